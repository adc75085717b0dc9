"""What torch's functions are made of on the CPU in this version, and that each part is routed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from calls import during
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

import batch_invariant_ops as bio

# Parts that move, compare or combine single elements: nothing of another row, and
# no order of operations, can enter.
ELEMENTWISE = {
    "_unsafe_view",
    "add",
    "add_",
    "alias",
    "as_strided",
    "clone",
    "contiguous",
    "copy_",
    "detach",
    "expand",
    "mul",
    "mul_",
    "permute",
    "pow",
    "reshape",
    "rsqrt",
    "rsqrt_",
    "select",
    "slice",
    "squeeze",
    "squeeze_",
    "t",
    "transpose",
    "unsqueeze",
    "view",
    "_to_copy",
    "nll_loss_forward",  # picks one element; the mean over rows is the caller's wish
}
# Whole reductions that torch dispatches under a name of their own before they
# arrive at a routed one.
PASS_THROUGH = {"sum", "mean"}


class Trace(TorchDispatchMode):
    """Names of the aten operators below autograd."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func._schema.name.removeprefix("aten::"))
        return func(*args, **(kwargs or {}))


X, W, B = torch.randn(4, 6), torch.randn(5, 6), torch.randn(5)
X3, X4 = torch.randn(2, 4, 6), torch.randn(2, 3, 4, 6)
TARGET = torch.tensor([0, 1, 2, 3])

# By name: the call, and the routes that it must reach.
CASES: dict[str, tuple[Callable[[], Tensor], set[str]]] = {
    "linear": (lambda: functional.linear(X, W), {"mm"}),
    "linear bias": (lambda: functional.linear(X, W, B), {"addmm"}),
    "linear 1d": (lambda: functional.linear(X[0], W), {"mm"}),
    "linear 3d bias": (lambda: functional.linear(X3, W, B), {"addmm"}),
    "linear 3d": (lambda: functional.linear(X3, W), {"mm"}),
    "matmul 1d 1d": (lambda: X[0] @ X[1], {"dot"}),
    "matmul 2d 1d": (lambda: X @ X[0], {"mv"}),
    "matmul 1d 2d": (lambda: X[0] @ W.t(), {"mm"}),
    "matmul 2d 2d": (lambda: X @ W.t(), {"mm"}),
    "matmul 3d 2d": (lambda: X3 @ W.t(), {"mm"}),
    "matmul 3d 1d": (lambda: X3 @ X[0], {"mv"}),
    "matmul 2d 3d": (lambda: W @ X3.mT, {"bmm"}),
    "matmul 3d 3d": (lambda: X3 @ X3.mT, {"bmm"}),
    "matmul 4d 3d": (lambda: X4 @ X3[:, None].mT, {"bmm"}),
    "einsum": (lambda: torch.einsum("bij,kj->bik", X3, W), {"bmm"}),
    "tensordot": (lambda: torch.tensordot(X3, W, dims=([2], [1])), {"mm"}),
    "inner": (lambda: torch.inner(X, W), {"mm"}),
    "softmax": (lambda: functional.softmax(X, -1), {"_softmax"}),
    "softmax dtype": (
        lambda: functional.softmax(X.bfloat16(), -1, dtype=torch.float32),
        {"_softmax"},
    ),
    "log_softmax": (lambda: functional.log_softmax(X, 0), {"_log_softmax"}),
    "cross_entropy": (
        lambda: functional.cross_entropy(X, TARGET, reduction="none"),
        {"_log_softmax"},
    ),
    "sum": (X.sum, {"sum.dim_IntList"}),
    "sum dim": (lambda: X3.sum((0, 2)), {"sum.dim_IntList"}),
    "mean": (X.mean, {"mean.dim"}),
    "mean dim": (lambda: X.mean(1), {"mean.dim"}),
    "rms_norm": (lambda: functional.rms_norm(X, (6,)), {"mean.dim"}),
    "rms_norm weight": (lambda: functional.rms_norm(X3, (6,), W[0], 1e-5), {"mean.dim"}),
    "attention math": (lambda: torch.softmax(X3 @ X3.mT, -1) @ X3, {"bmm", "_softmax"}),
}


@pytest.mark.parametrize("name", list(CASES))
def test_trace(name: str) -> None:
    call, routes = CASES[name]
    with bio.enabled():
        _, routed, original = during(call)
        with torch.no_grad(), Trace() as trace:
            call()
    left = set(trace.names) - ELEMENTWISE - PASS_THROUGH - {r.partition(".")[0] for r in routes}
    assert left == set(), f"torch {torch.__version__}: {name} is {trace.names}"
    assert set(routed) == routes, f"torch {torch.__version__}: {name} is {trace.names}"
    assert original == {}


def test_rms_norm_is_pow_mean_rsqrt_mul() -> None:
    with torch.no_grad(), Trace() as trace:
        functional.rms_norm(X, (6,), W[0], 1e-5)
    kernels = [n.rstrip("_") for n in trace.names if n not in {"alias", "detach"}]
    assert kernels.index("pow") < kernels.index("mean") < kernels.index("rsqrt")
    assert kernels[-1] == "mul"


def test_attention_bypasses_and_is_reported() -> None:
    q = torch.randn(1, 2, 8, 16)
    with bio.enabled(), torch.no_grad():
        _, routed, original = during(lambda: functional.scaled_dot_product_attention(q, q, q))
    if not routed and not original:
        assert "scaled_dot_product_attention" in bio.report().not_routed
    else:  # the math backend
        assert set(routed) <= {"bmm", "_softmax"}


def test_inductor_bypasses_and_is_reported() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.softmax(x, -1).sum(-1), dynamic=False)
    x = torch.randn(8, 64)
    with bio.enabled():
        compiled(x)
        _, routed, _ = during(lambda: compiled(x))
    assert routed == {}
    assert any("inductor" in name for name in bio.report().not_routed)
