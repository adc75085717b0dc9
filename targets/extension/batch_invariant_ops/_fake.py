"""Sizes and dtypes of results without data, for torch.compile and fake tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

PANEL = 64  # columns in a panel of packed weights


def _check(condition: object, message: str) -> None:
    torch._check(bool(condition), lambda: message)


def _same_dtype(op: str, *tensors: Tensor | None) -> None:
    dtypes = {t.dtype for t in tensors if t is not None}
    _check(len(dtypes) == 1, f"{op} expects operands of one dtype; got {dtypes}")


def mm(self: Tensor, mat2: Tensor) -> Tensor:
    _same_dtype("mm", self, mat2)
    _check(self.dim() == 2 and mat2.dim() == 2, "mm expects two matrices")
    torch._check(self.size(1) == mat2.size(0), lambda: "mm cannot combine these sizes")
    return self.new_empty((self.size(0), mat2.size(1)))


def bmm(self: Tensor, mat2: Tensor) -> Tensor:
    _same_dtype("bmm", self, mat2)
    _check(self.dim() == 3 and mat2.dim() == 3, "bmm expects two batches of matrices")
    torch._check(self.size(0) == mat2.size(0), lambda: "bmm cannot combine these sizes")
    torch._check(self.size(2) == mat2.size(1), lambda: "bmm cannot combine these sizes")
    return self.new_empty((self.size(0), self.size(1), mat2.size(2)))


def addmm(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1.0, alpha: float = 1.0
) -> Tensor:
    _same_dtype("addmm", self, mat1, mat2)
    return mm(mat1, mat2)


def matmul(self: Tensor, other: Tensor) -> Tensor:
    _same_dtype("matmul", self, other)
    _check(self.dim() > 0 and other.dim() > 0, "matmul expects at least one dimension")
    inner = other.size(0) if other.dim() == 1 else other.size(-2)
    torch._check(self.size(-1) == inner, lambda: "matmul cannot combine these sizes")
    batch = torch.broadcast_shapes(self.shape[:-2], other.shape[:-2])
    rows = self.shape[-2:-1]
    cols = other.shape[-1:] if other.dim() > 1 else ()
    return self.new_empty((*batch, *rows, *cols))


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:  # noqa: A002
    _same_dtype("linear", input, weight, bias)
    _check(input.dim() > 0 and weight.dim() == 2, "linear expects a matrix as weight")
    torch._check(input.size(-1) == weight.size(1), lambda: "linear cannot combine these sizes")
    return input.new_empty((*input.shape[:-1], weight.size(0)))


def pack(weight: Tensor) -> Tensor:
    _check(weight.dim() == 2, "pack expects a matrix")
    panels = (weight.size(0) + PANEL - 1) // PANEL
    return weight.new_empty((panels, weight.size(1), PANEL))


def linear_packed(
    input: Tensor,  # noqa: A002
    packed: Tensor,
    out_features: int,
    bias: Tensor | None = None,
) -> Tensor:
    _same_dtype("linear_packed", input, packed, bias)
    _check(packed.dim() == 3, "linear_packed expects what pack gave")
    torch._check(
        input.size(-1) == packed.size(1), lambda: "linear_packed cannot combine these sizes"
    )
    return input.new_empty((*input.shape[:-1], out_features))


def _reduced(
    self: Tensor, dim: Sequence[int] | None, keepdim: bool, dtype: torch.dtype | None
) -> Tensor:
    ndim = self.dim()
    dims = {d % ndim for d in dim} if dim and ndim else set(range(ndim))
    shape = [
        1 if i in dims else size for i, size in enumerate(self.shape) if keepdim or i not in dims
    ]
    return self.new_empty(shape, dtype=dtype or self.dtype)


def sum(  # noqa: A001
    self: Tensor,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    return _reduced(self, dim, keepdim, dtype)


def mean(
    self: Tensor,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: torch.dtype | None = None,
) -> Tensor:
    return _reduced(self, dim, keepdim, dtype)


def reduce_last(self: Tensor) -> Tensor:
    return _reduced(self, [-1], False, None)


# Memory formats that an elementwise result keeps, by number of dimensions.
_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def softmax(self: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    _check(-max(self.dim(), 1) <= dim < max(self.dim(), 1), f"softmax: dim {dim} is out of range")
    like = _FORMATS.get(self.dim())
    if like is None or self.is_contiguous() or not self.is_contiguous(memory_format=like):
        like = torch.contiguous_format
    return torch.empty_like(self, dtype=dtype or self.dtype, memory_format=like)


def log_softmax(self: Tensor, dim: int, dtype: torch.dtype | None = None) -> Tensor:
    return softmax(self, dim, dtype)


def softmax_last(self: Tensor) -> Tensor:
    return softmax(self, -1)


def rms_norm(
    input: Tensor,  # noqa: A002
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    _check(math.prod(normalized_shape) >= 0, "rms_norm expects sizes in normalized_shape")
    return input.new_empty(input.shape)


def add_rms_norm(
    input: Tensor,  # noqa: A002
    residual: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> tuple[Tensor, Tensor]:
    _same_dtype("add_rms_norm", input, residual)
    return input.new_empty(input.shape), input.new_empty(input.shape)


def rms_norm_last(input: Tensor, weight: Tensor, eps: float) -> Tensor:  # noqa: A002
    _check(input.dim() > 0, "rms_norm expects at least one dimension")
    torch._check(weight.size(0) == input.size(-1), lambda: "weight must have input's last size")
    return rms_norm(input, [input.size(-1)], weight, eps)


def add_rms_norm_last(
    input: Tensor,  # noqa: A002
    residual: Tensor,
    weight: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    _same_dtype("add_rms_norm", input, residual)
    return rms_norm_last(input, weight, eps), input.new_empty(input.shape)


def control_mm(self: Tensor, mat2: Tensor) -> Tensor:
    return mm(self, mat2)


FAKES: dict[str, Callable[..., Any]] = {
    "mm": mm,
    "bmm": bmm,
    "addmm": addmm,
    "matmul": matmul,
    "linear": linear,
    "pack": pack,
    "linear_packed": linear_packed,
    "sum": sum,
    "mean": mean,
    "sum.last": reduce_last,
    "mean.last": reduce_last,
    "softmax": softmax,
    "softmax.last": softmax_last,
    "log_softmax": log_softmax,
    "log_softmax.last": softmax_last,
    "rms_norm": rms_norm,
    "rms_norm.last": rms_norm_last,
    "add_rms_norm": add_rms_norm,
    "add_rms_norm.last": add_rms_norm_last,
    "_control_mm": control_mm,
}


def register() -> None:
    """Registers them all."""
    for name, fake in FAKES.items():
        torch.library.register_fake(f"batch_invariant_ops::{name}", fake, allow_override=True)
