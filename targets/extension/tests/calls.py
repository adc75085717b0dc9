"""What ran, from report(): differences between two moments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import batch_invariant_ops as bio


def counts() -> dict[str, tuple[int, dict[str, int]]]:
    """Calls of each route: routed, and original by reason."""
    return {r.name: (r.routed, r.original) for r in bio.report().routes}


def during(call: Callable[[], Any]) -> tuple[Any, dict[str, int], dict[str, dict[str, int]]]:
    """The result of call, and the routed and original calls that it made."""
    before = counts()
    result = call()
    routed: dict[str, int] = {}
    original: dict[str, dict[str, int]] = {}
    for name, (ran, reasons) in counts().items():
        old_ran, old_reasons = before[name]
        if ran != old_ran:
            routed[name] = ran - old_ran
        new = {w: n - old_reasons.get(w, 0) for w, n in reasons.items()}
        new = {w: n for w, n in new.items() if n}
        if new:
            original[name] = new
    return result, routed, original
