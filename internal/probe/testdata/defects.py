"""Runs the sweep of level 7 on operators with one defect each, and checks the
observation about torch by a plain loop. One JSON object on stdout.

Usage: defects.py FOLDER_OF_SCRIPTS < request
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

sys.path.insert(0, sys.argv[1])

import torch
from invar_probe import cases, measure, observe
from invar_probe.package import Package
from invar_probe.schedule import DTYPES, Schedule, Setting, parse
from invar_probe.sweep import Run

Product = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def one_way(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The invariant product."""
    out: torch.Tensor = torch.ops.batch_invariant_ops.mm(x, w)
    return out


def other_way(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """The same product summed from the other end."""
    return one_way(x.flip(1), w.flip(0))


def when(condition: Callable[[torch.Tensor, torch.Tensor], bool]) -> Product:
    """A product that goes the other way under a condition."""
    return lambda x, w: other_way(x, w) if condition(x, w) else one_way(x, w)


def last_tile(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Rows behind the last whole tile of 16 go another way."""
    whole = x.shape[0] // 16 * 16
    return torch.cat((one_way(x[:whole], w), other_way(x[whole:], w)))


def common_scale(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Scales by the largest element of the batch, as dynamic FP8 does."""
    scale = x[x.isfinite()].abs().max().clamp(min=1.0)
    return one_way(x / scale, w) * scale


class EverySeventh:
    """Goes another way in every seventh call."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        """One call."""
        self.calls += 1
        return other_way(x, w) if self.calls % 7 == 0 else one_way(x, w)


def aligned(t: torch.Tensor) -> bool:
    """Whether t starts where a vector load is aligned."""
    return t.data_ptr() % 64 == 0


DEFECTS: dict[str, Product] = {
    "none": one_way,
    "one row": when(lambda x, w: x.shape[0] == 1),
    "threshold": when(lambda x, w: x.shape[0] >= 256),
    "odd rows": when(lambda x, w: x.shape[0] % 2 == 1 and x.shape[0] < 8),
    "last tile": last_tile,
    "neighbours": when(lambda x, w: not bool(x.isfinite().all())),
    "scale": common_scale,
    "address": when(lambda x, w: not aligned(x)),
    "stride": when(lambda x, w: x.stride(0) != x.shape[1]),
    "weights": when(lambda x, w: not w.is_contiguous()),
    "threads": when(lambda x, w: torch.get_num_threads() > 1),
    "chance": EverySeventh(),
    "zeros": lambda x, w: torch.zeros(x.shape[0], w.shape[1], dtype=x.dtype),
    "one result": lambda x, w: one_way(torch.ones_like(x), w),
}


def sweep(schedule: Schedule, name: str, product: Product) -> dict[str, Any]:
    """Level 7 of one product, as measure.py does it."""
    spec = cases.Spec(name, "product", 300, 40, pool=300)
    case = cases.make(spec, DTYPES["float32"], schedule.most_rows(), 1, lambda _: product)
    run = Run.of(case)
    run.check_order()
    for setting in schedule.settings:
        threads = setting.threads or 2
        torch.set_num_threads(threads)
        for s in setting.sweeps:
            if not schedule.sweeps[s].routed:
                run.sweep(schedule.sweeps[s], Setting("", threads, []))
    torch.set_num_threads(2)
    return run.result()


def plain_loop(schedule: Schedule) -> list[int]:
    """At which m torch.mm gives a row other bits than in the largest batch."""
    spec = schedule.observe
    assert spec is not None
    rows = sorted({r for s in schedule.sweeps.values() for r in s.rows})
    case = cases.make(spec, torch.float32, rows[-1], schedule.seed, lambda _: torch.mm)
    full = torch.mm(case.pool, case.fixed[0])
    out = []
    for m in rows:
        part = torch.mm(case.pool[:m], case.fixed[0])
        if part.numpy().tobytes() != full[:m].numpy().tobytes():
            out.append(m)
    return out


def main() -> None:
    """Answers the request."""
    schedule = parse(json.load(sys.stdin)["schedule"])
    package = Package("batch_invariant_ops")
    torch.set_num_threads(2)
    answer = {
        "defects": [sweep(schedule, name, p) for name, p in DEFECTS.items()],
        "observed": observe.torch_batches(
            schedule, package, measure.Resolver("batch_invariant_ops")
        )["differing_batches"],
        "plain_loop": plain_loop(schedule),
    }
    print(json.dumps(answer))


main()
