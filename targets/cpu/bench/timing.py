"""Times calls side by side and gives the ratios of their times.

All candidates of a row are timed in turns, so that what else the machine does
meanwhile meets every side. A ratio is that of the best times: load by others
only ever adds, and on threads that share cores it adds by the tenfold.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import batch_invariant_ops as ops

ROUNDS = 9
SAMPLE_S = 0.003  # of one measurement; short calls are repeated to fill it
LONGEST_S = 0.4  # a call that takes longer is left out and named


@dataclass(frozen=True)
class Candidate:
    """One way to compute a row's result."""

    run: Callable[[], object]
    before: Callable[[], None] = field(default=lambda: None)  # not timed


def off() -> None:
    """Ends routing, where it is on."""
    while ops.is_enabled():
        ops.disable()


def on() -> None:
    """Routes."""
    off()
    ops.enable()


def once(run: Callable[[], object], calls: int) -> float:
    """Seconds a call."""
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def measure(candidates: Mapping[str, Candidate]) -> dict[str, list[float]]:
    """Seconds a call of each candidate, one value a round.

    A candidate whose call takes longer than LONGEST_S is not in the result.
    """
    calls: dict[str, int] = {}
    for name, candidate in candidates.items():
        candidate.before()
        first = once(candidate.run, 1)
        if first > LONGEST_S:
            print(f"left out: {name}, {first:.1f} s a call", file=sys.stderr)
            continue
        calls[name] = max(1, round(SAMPLE_S / once(candidate.run, 1)))
    times: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for turn in range(ROUNDS):
        shift = turn % max(1, len(names))
        for name in names[shift:] + names[:shift]:
            candidates[name].before()
            if calls[name] > 1:
                candidates[name].run()  # the others had the caches
            times[name].append(once(candidates[name].run, calls[name]))
    return times


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Our best time divided by theirs."""
    return min(ours) / min(theirs)


def emit(name: str, ours: Sequence[float], metrics: Mapping[str, float]) -> None:
    """Prints a row as one line of JSON: the name of a benchmark and its values by unit."""
    values = {"ns/op": min(ours) * 1e9, **metrics}
    print(json.dumps({"name": name, "metrics": values}), flush=True)
