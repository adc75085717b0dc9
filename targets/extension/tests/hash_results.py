"""Prints a hash of the bits of every operator on inputs that no library makes.

Run by test_abi.py in each torch that is there: one library, one hash.
"""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor
from torch.nn import functional

import batch_invariant_ops as bio

ops = torch.ops.batch_invariant_ops


def values(seed: int, *shape: int) -> Tensor:
    """Integer arithmetic only: the same in every version of everything."""
    count = 1
    for size in shape:
        count *= size
    i = torch.arange(count, dtype=torch.int64) + seed * 1_000_003
    x = (i * 2_654_435_761 + 12_345) % 4_294_967_296
    x = (x ^ (x >> 13)) * 40_503 % 65_536
    exponent = (x % 13 - 6).to(torch.float64)
    return ((x.double() - 32_768) / 32_768 * torch.exp2(exponent)).float().view(shape)


def results(dtype: torch.dtype) -> list[Tensor]:
    x, w = values(1, 37, 515).to(dtype), values(2, 90, 515).to(dtype)
    bias, gain = values(3, 90).to(dtype), values(4, 515).to(dtype)
    out = [
        ops.mm(x, w.t()),
        ops.bmm(x.view(37, 5, 103), w[:74, :412].reshape(74, 4, 103)[:37].mT),
        ops.addmm(bias, x, w.t(), beta=0.5, alpha=1.5),
        ops.matmul(x.view(37, 5, 103), w[0, :103]),
        ops.linear(x, w, bias),
        ops.linear_packed(x, ops.pack(w), 90, bias),
        ops.sum(x, [1]),
        ops.mean(x, [0]),
        ops.sum(x),
        ops.softmax(x, 1),
        ops.log_softmax(x, 0),
        ops.rms_norm(x, [515], gain, 1e-6),
        *ops.add_rms_norm(x, x.flip(0), [515], gain, 1e-6),
    ]
    with bio.enabled():
        out += [
            x @ w.t(),
            functional.linear(x, w, bias),
            x.softmax(-1),
            x.log_softmax(-1),
            x.sum(0),
            x.mean(),
            x @ w[0],
        ]
    return out


def digest() -> str:
    total = hashlib.sha256()
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        as_int = torch.int32 if dtype == torch.float32 else torch.int16
        for result in results(dtype):
            total.update(str(tuple(result.shape)).encode())
            total.update(result.contiguous().view(as_int).numpy().tobytes())
    return total.hexdigest()


def main() -> None:
    best = bio.isa()
    for level in {"baseline", best}:
        bio.select_isa(level)
        print(digest(), torch.__version__, level)


if __name__ == "__main__":
    main()
