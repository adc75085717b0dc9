"""Times rms_norm, softmax, log_softmax and sum against torch.

The operators are called three ways: by their short overloads, as torch's own functions
while they are routed, which is the same call on both sides, and on the shortest rows by
their whole schemas as well, where Python converts more arguments (a list takes half a
microsecond).
"""

from __future__ import annotations

from functools import partial

import batch_invariant_ops as ops
import torch

from levels import levels
from timing import Candidate, emit, measure, off, on, ratio

SHAPES = ((1, 4096), (32, 4096), (32, 32000), (1, 152064), (4096, 4096))
THREADS = (1, 2)
WHOLE = 4096  # elements up to which the whole schemas are timed, too: above, a call's cost is lost


def unrouted(level: str) -> None:
    """Selects a level and ends routing."""
    off()
    ops.select_isa(level)


def routed(level: str) -> None:
    """Selects a level and routes."""
    on()
    ops.select_isa(level)


def row(rows: int, columns: int) -> None:
    """Measures the four operators on one shape, on the threads that are set."""
    x, weight = torch.randn(rows, columns), torch.randn(columns)
    own = torch.ops.batch_invariant_ops
    norm = torch.nn.functional.rms_norm
    for name, theirs, short, whole in (
        (
            "RMSNorm",
            partial(norm, x, (columns,), weight, 1e-6),
            partial(own.rms_norm.last, x, weight, 1e-6),
            partial(own.rms_norm.default, x, [columns], weight, 1e-6),
        ),
        (
            "Softmax",
            partial(torch.softmax, x, -1),
            partial(own.softmax.last, x),
            partial(own.softmax.default, x, -1),
        ),
        (
            "LogSoftmax",
            partial(torch.log_softmax, x, -1),
            partial(own.log_softmax.last, x),
            partial(own.log_softmax.default, x, -1),
        ),
        (
            "Sum",
            partial(torch.sum, x, -1),
            partial(own.sum.last, x),
            partial(own.sum.default, x, [-1]),
        ),
    ):
        candidates = {"torch": Candidate(theirs, off)}
        for level in levels():
            candidates[f"isa={level}"] = Candidate(short, partial(unrouted, level))
            if rows * columns <= WHOLE:
                candidates[f"isa={level}/call=whole"] = Candidate(whole, partial(unrouted, level))
            if name != "RMSNorm":  # torch computes it of several operators
                candidates[f"isa={level}/call=routed"] = Candidate(theirs, partial(routed, level))
        times = measure(candidates)
        off()
        where = f"shape={rows}x{columns}/threads={torch.get_num_threads()}"
        for level, seconds in times.items():
            if level != "torch":
                emit(
                    f"{name}/{where}/{level}", seconds, {"of-torch": ratio(seconds, times["torch"])}
                )


def main() -> None:
    """Measures every row."""
    torch.manual_seed(0)
    for threads in THREADS:
        torch.set_num_threads(threads)
        for rows, columns in SHAPES:
            row(rows, columns)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
