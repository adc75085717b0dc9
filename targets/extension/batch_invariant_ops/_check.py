"""A quick check that an import gave working, invariant operators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

_ROWS = 37  # odd, and more than one block of rows
_COLS = 515  # no multiple of a vector or a panel


@dataclass(frozen=True)
class Check:
    """One line of quick_check(): what was checked, whether it holds, and what was seen."""

    name: str
    ok: bool
    detail: str


def _inputs() -> tuple[Tensor, Tensor]:
    """Normal numbers with exponents spread over 16 bits, so that order shows."""
    generator = torch.Generator().manual_seed(20)
    x, w = (
        torch.randn(rows, _COLS, generator=generator)
        * torch.exp2(torch.randint(-8, 9, (rows, _COLS), generator=generator).float())
        for rows in (_ROWS, 96)
    )
    return x, w


def _same_bits(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.contiguous().view(torch.int32), b.contiguous().view(torch.int32))


def _invariant(name: str, op: Callable[[Tensor], Tensor], x: Tensor) -> Check:
    whole = op(x)
    wrong = [i for i in range(_ROWS) if not _same_bits(op(x[i : i + 1]), whole[i : i + 1])]
    return Check(
        name,
        not wrong,
        f"{_ROWS} rows alone and together: " + (f"rows {wrong} differ" if wrong else "same bits"),
    )


def quick_check() -> list[Check]:
    """Runs each operator on one row at a time and on all rows, and compares the bits.

    The last line is a control: a product that depends on the batch on purpose has
    to be caught, or the lines above prove nothing.
    """
    ops = torch.ops.batch_invariant_ops
    x, w = _inputs()
    packed = ops.pack(w)
    checks = [
        _invariant("mm", lambda a: ops.mm(a, w.t()), x),
        _invariant("linear_packed", lambda a: ops.linear_packed(a, packed, w.size(0)), x),
        _invariant("sum", lambda a: ops.sum(a, [1]), x),
        _invariant("mean", lambda a: ops.mean(a, [1]), x),
        _invariant("softmax", lambda a: ops.softmax(a, 1), x),
        _invariant("log_softmax", lambda a: ops.log_softmax(a, 1), x),
        _invariant("rms_norm", lambda a: ops.rms_norm(a, [_COLS]), x),
    ]
    control = _invariant("control", lambda a: ops._control_mm(a, w.t()), x)
    checks.append(
        Check(
            "control",
            not control.ok,
            "a batch-dependent product is "
            + ("caught" if not control.ok else "NOT caught: the check sees nothing"),
        )
    )
    return checks
