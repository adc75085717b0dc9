"""What torch itself does: shown beside the verdict, never part of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import cases
from .cases import Operator
from .npu import Device
from .package import Package
from .schedule import DTYPES, Schedule, Setting, Sweep
from .sweep import Run


def torch_batches(
    schedule: Schedule, package: Package | Device, resolve: Callable[[str], Operator]
) -> dict[str, Any]:
    """At which numbers of rows torch's own operator changes a row's bits.

    Compared with the largest batch, in the process's usual number of threads and
    with nothing routed to the invariant operators.
    """
    spec = schedule.observe
    assert spec is not None
    function = resolve(spec.operator)
    out: dict[str, Any] = {"operator": spec.operator, "threads": torch.get_num_threads()}
    name = schedule.dtypes[0]
    rows = sorted({r for s in schedule.sweeps.values() for r in s.rows})
    with package.unrouted():
        case = cases.make(spec, DTYPES[name], rows[-1], schedule.seed, lambda _: function)
        run = Run.of(case)
        run.sweep(Sweep("sizes", rows), Setting("", torch.get_num_threads(), []))
    result = run.result()
    out["dtype"] = name
    out["shape"] = [spec.size, spec.columns]
    out["batches"] = result["batches"]
    out["differing_batches"] = result["differing_batches"]
    return out
