"""vLLM's own C operators on the CPU, called as their torch counterparts are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from vllm import _custom_ops as ops  # type: ignore[import-not-found,unused-ignore]
from vllm.platforms import current_platform  # type: ignore[import-not-found,unused-ignore]

current_platform.import_kernels()

# oneDNN's handlers by weight; the weight is kept so that its id stays its own.
_handlers: dict[int, tuple[torch.Tensor, Any]] = {}


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """oneDNN with packed weights, as linear layers of a CPU server call it."""
    key = id(weight)
    if key not in _handlers:
        _handlers[key] = (weight, ops.create_onednn_mm(weight.contiguous().t(), 32))
    out: torch.Tensor = ops.onednn_mm(_handlers[key][1], x.contiguous(), bias.contiguous())
    return out


def rms_norm(
    x: torch.Tensor, shape: Sequence[int], weight: torch.Tensor, eps: float
) -> torch.Tensor:
    """torch.ops._C.rms_norm."""
    out = torch.empty(x.shape, dtype=x.dtype)
    torch.ops._C.rms_norm(out, x.contiguous(), weight.contiguous(), eps)
    return out


def fused_add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, shape: Sequence[int], weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """torch.ops._C.fused_add_rms_norm, which works in place."""
    x = x.clone(memory_format=torch.contiguous_format)
    residual = residual.clone(memory_format=torch.contiguous_format)
    torch.ops._C.fused_add_rms_norm(x, residual, weight.contiguous(), eps)
    return x, residual


def silu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """torch.ops._C.silu_and_mul: elementwise over two halves of a row."""
    out = torch.empty((*x.shape[:-1], x.shape[-1] // 2), dtype=x.dtype)
    torch.ops._C.silu_and_mul(out, x.contiguous())
    return out


def gelu_and_mul(x: torch.Tensor) -> torch.Tensor:
    """torch.ops._C.gelu_and_mul: elementwise over two halves of a row."""
    out = torch.empty((*x.shape[:-1], x.shape[-1] // 2), dtype=x.dtype)
    torch.ops._C.gelu_and_mul(out, x.contiguous())
    return out
