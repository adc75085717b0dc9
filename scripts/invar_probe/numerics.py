"""Level 6: each operator once on ordinary and on special values."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import torch

from .cases import Case
from .reference import Deviation, deviation


def measure(case: Case) -> dict[str, Any]:
    """Calls the case on its pool, then with infinities and NaN in three rows."""
    out = {
        "operator": case.spec.operator,
        "family": case.spec.family,
        "label": case.spec.label(),
        "dtype": str(case.dtype).removeprefix("torch."),
        "ordinary": _outputs(case, case.pool),
    }
    special = case.pool.clone()
    info = torch.finfo(case.dtype)
    for row, value in enumerate((float("inf"), -float("inf"), float("nan"), info.tiny)):
        if row < special.shape[0]:
            special[row].view(-1)[row] = value
    out["special"] = _outputs(case, special)
    return out


def _outputs(case: Case, x: torch.Tensor) -> list[dict[str, Any]]:
    got = case.call(x, case.fixed)
    want = case.expect(x, case.fixed)
    out = []
    for g, w in zip(got, want, strict=True):
        d = _shape_error(g, w.value) or deviation(g, w)
        entry: dict[str, Any] = asdict(d) if isinstance(d, Deviation) else {"error": d}
        entry["elements"] = g.numel()
        entry["zero"] = bool((g == 0).all())
        out.append(entry)
    return out


def _shape_error(got: torch.Tensor, want: torch.Tensor) -> str:
    if got.shape == want.shape:
        return ""
    return f"shape {list(got.shape)}, want {list(want.shape)}"
