"""Times linear and linear_packed against torch and against oneDNN.

oneDNN is the one inside torch with the weights reordered beforehand for this
very number of rows, which is how vLLM and inductor call it; MKL, which torch
takes for float32, runs at half speed on some CPUs and would flatter us.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import batch_invariant_ops as ops
import torch

from levels import levels
from timing import Candidate, emit, measure, ratio

ROWS = (1, 8, 32, 128, 512)
WEIGHTS = (1024, 4096)
THREADS = (1, 2)
DTYPES = (torch.float32, torch.bfloat16)


def onednn(x: torch.Tensor, weight: torch.Tensor) -> Callable[[], object]:
    """A call of oneDNN on weights in its own layout."""
    call = torch.ops.mkldnn
    packed = call._reorder_linear_weight(weight, x.shape[0])
    return partial(call._linear_pointwise, x, packed, None, "none", [], "")


def row(x: torch.Tensor, weight: torch.Tensor, packed: torch.Tensor) -> None:
    """Measures one shape on the threads that are set."""
    own = torch.ops.batch_invariant_ops
    n, k = weight.shape
    candidates = {
        "torch": Candidate(partial(torch.nn.functional.linear, x, weight)),
        "onednn": Candidate(onednn(x, weight)),
    }
    for level in levels():
        select = partial(ops.select_isa, level)
        for name, run in (
            ("yes", partial(own.linear_packed, x, packed, n)),
            ("no", partial(own.linear, x, weight)),
        ):
            candidates[f"isa={level}/packed={name}"] = Candidate(run, select)
    times = measure(candidates)
    dtype = str(x.dtype).removeprefix("torch.")
    where = f"dtype={dtype}/weights={n}/m={x.shape[0]}/threads={torch.get_num_threads()}"
    for name, ours in times.items():
        if name in ("torch", "onednn"):
            continue
        emit(
            f"Linear/{where}/{name}",
            ours,
            {
                "of-torch": ratio(ours, times["torch"]),
                "of-onednn": ratio(ours, times["onednn"]),
                "GFLOP/s": 2 * x.shape[0] * n * k / min(ours) / 1e9,
            },
        )


def main() -> None:
    """Measures every row."""
    torch.manual_seed(0)
    for threads in THREADS:
        torch.set_num_threads(threads)
        for dtype in DTYPES:
            for size in WEIGHTS:
                weight = torch.randn(size, size, dtype=dtype)
                packed = torch.ops.batch_invariant_ops.pack(weight)
                for m in ROWS:
                    row(torch.randn(m, size, dtype=dtype), weight, packed)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
