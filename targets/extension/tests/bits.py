"""Inputs that show a changed order of operations, and comparison by bits."""

from __future__ import annotations

import torch
from torch import Tensor

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
# Exponent range of the inputs: products of two must stay finite in the dtype.
_SPREAD = {torch.float32: 12, torch.bfloat16: 12, torch.float16: 3}
# Comparison with float64, relative to the largest result: rounding of the output
# dtype, and of a few thousand fp32 additions.
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 2**-7, torch.float16: 2**-10}


def spread(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normal numbers, both signs, with random exponents."""
    s = _SPREAD[dtype]
    exponent = torch.randint(-s, s + 1, shape).float()
    return (torch.randn(*shape) * torch.exp2(exponent / 2)).to(dtype)


def bits(t: Tensor) -> Tensor:
    """The bits of a tensor as integers."""
    return t.contiguous().view(torch.int32 if t.dtype == torch.float32 else torch.int16)


def same(a: Tensor, b: Tensor) -> bool:
    """Same sizes, same dtype, same bits."""
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a), bits(b))


def close(got: Tensor, want: Tensor, tolerance: float | None = None) -> None:
    """got is want (float64) up to the rounding of got's dtype."""
    assert got.shape == want.shape, (got.shape, want.shape)
    if got.numel() == 0:
        return
    scale = max(1.0, float(want.abs().max()))
    worst = float((got.double() - want).abs().max())
    allowed = (tolerance or TOLERANCE[got.dtype]) * scale
    assert worst <= allowed, f"off by {worst}, allowed {allowed}"
