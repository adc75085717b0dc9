"""Times linear and linear_packed against torch, against oneDNN and against vLLM.

oneDNN is the one inside torch with the weights reordered beforehand for this
very number of rows, as inductor calls it; MKL, which torch takes for float32,
runs at half speed on some CPUs and would flatter us. Where vLLM for the CPU is
installed, its own build of oneDNN is timed beside it, called as its linear
layers do: the weights are prepared once, for any number of rows.
"""

from __future__ import annotations

import importlib
import importlib.util
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


VLLM_ROWS = 32  # what its CPU backend prepares weights for


def vllm(weight: torch.Tensor) -> Callable[[torch.Tensor], object] | None:
    """vLLM's product with a weight that it has prepared; None without vLLM."""
    if importlib.util.find_spec("vllm") is None:
        return None
    operators = importlib.import_module("vllm._custom_ops")
    importlib.import_module("vllm.platforms").current_platform.import_kernels()
    handler = operators.create_onednn_mm(weight.t(), VLLM_ROWS)
    return lambda x: operators.onednn_mm(handler, x, None)


def row(
    x: torch.Tensor,
    weight: torch.Tensor,
    packed: torch.Tensor,
    served: Callable[[torch.Tensor], object] | None,
) -> None:
    """Measures one shape on the threads that are set."""
    own = torch.ops.batch_invariant_ops
    n, k = weight.shape
    candidates = {
        "torch": Candidate(partial(torch.nn.functional.linear, x, weight)),
        "onednn": Candidate(onednn(x, weight)),
    }
    if served is not None:
        candidates["vllm"] = Candidate(partial(served, x))
    others = tuple(candidates)
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
        if name in others:
            continue
        metrics = {f"of-{other}": ratio(ours, times[other]) for other in others if other in times}
        metrics["GFLOP/s"] = 2 * x.shape[0] * n * k / min(ours) / 1e9
        emit(f"Linear/{where}/{name}", ours, metrics)


def main() -> None:
    """Measures every row."""
    torch.manual_seed(0)
    for threads in THREADS:
        torch.set_num_threads(threads)
        for dtype in DTYPES:
            for size in WEIGHTS:
                weight = torch.randn(size, size, dtype=dtype)
                packed = torch.ops.batch_invariant_ops.pack(weight)
                served = vllm(weight)
                for m in ROWS:
                    row(torch.randn(m, size, dtype=dtype), weight, packed, served)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
