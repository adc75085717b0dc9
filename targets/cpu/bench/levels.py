"""The ISA levels of this machine."""

from __future__ import annotations

import platform

import batch_invariant_ops as ops

KNOWN = {"x86_64": ("avx512", "avx2", "baseline"), "aarch64": ("neon", "baseline")}


def levels() -> list[str]:
    """Every level that can be selected here, the fastest first."""
    found = []
    for name in KNOWN[platform.machine()]:
        try:
            ops.select_isa(name)
        except RuntimeError:
            continue
        found.append(name)
    ops.select_isa(None)
    return found
