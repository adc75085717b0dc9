"""Stage 2 of CUDA on emulated kernels: sizes, strides, batches, out=, numbers, bits.

Runs the sources of lib_ops_cuda.so compiled for tensors of the CPU (INVAR_OPS_EMULATED)
on stage 1 compiled into the emulator, so everything but streams and devices is what a
GPU gets. Usage: stage2.py LIB_OPS LIBINVAR_CUDA
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Callable

import torch
from torch import Tensor

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
# Relative to the largest magnitude that the result could have.
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}
generator = torch.Generator().manual_seed(7)


def load(extension: str, stage1: str) -> None:
    """Loads the library and gives it its stage 1."""
    torch.ops.load_library(extension)
    error = ctypes.create_string_buffer(4096)
    attach = ctypes.CDLL(extension).invar_ops_attach
    if attach(stage1.encode(), error, ctypes.c_int64(4096)) != 0:
        raise SystemExit(error.value.decode())


def random(*sizes: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normal numbers with exponents spread, so that order shows."""
    x = torch.randn(sizes, generator=generator)
    return (x * torch.exp2(torch.randint(-6, 7, sizes, generator=generator).float())).to(dtype)


def same(got: Tensor, want: Tensor) -> bool:
    """Whether two tensors have the same sizes and bits."""
    kind = {4: torch.int32, 2: torch.int16}[got.element_size()]
    return got.shape == want.shape and torch.equal(
        got.contiguous().view(kind) if got.dim() else got.reshape(1).view(kind),
        want.contiguous().view(kind) if want.dim() else want.reshape(1).view(kind),
    )


def must_be_same(name: str, got: Tensor, want: Tensor) -> None:
    """Fails when the bits differ."""
    if not same(got, want):
        raise SystemExit(
            f"{name}: other bits: {got.shape} {got.flatten()[:4]} {want.flatten()[:4]}"
        )


def must_be_close(name: str, got: Tensor, want: Tensor) -> None:
    """Fails when got is not want (float64) within the dtype's rounding."""
    scale = max(1.0, float(want.abs().max())) if want.numel() else 1.0
    off = float((got.double() - want).abs().max()) if want.numel() else 0.0
    if got.shape != want.shape or not off <= TOLERANCE[got.dtype] * scale:
        raise SystemExit(f"{name}: {got.shape} want {want.shape}, off by {off} of {scale}")


def spaced(t: Tensor) -> Tensor:
    """The same values with gaps in every dimension."""
    big = torch.full([2 * s + 1 for s in t.shape], 3.0).to(t.dtype)
    view = big[tuple(slice(1, 2 * s + 1, 2) for s in t.shape)]
    return view.copy_(t)


def turned(t: Tensor) -> Tensor:
    """The same values with the dimensions stored in reverse."""
    order = list(range(t.dim()))[::-1]
    return t.permute(order).contiguous().permute(order)


def shifted(t: Tensor) -> Tensor:
    """The same values one element behind an aligned address."""
    flat = torch.empty(t.numel() + 1, dtype=t.dtype)[1:]
    return flat.copy_(t.reshape(-1)).view(t.shape)


LAYOUTS = (spaced, turned, shifted)


def each_layout(name: str, op: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """The result of op, which must not depend on how its operands lie."""
    got = op(*tensors)
    for layout in LAYOUTS:
        must_be_same(f"{name} {layout.__name__}", op(*map(layout, tensors)), got)
    return got


def products(dtype: torch.dtype) -> None:
    """mm, bmm, addmm, matmul, linear, pack, linear_packed."""
    ops = torch.ops.batch_invariant_ops
    for m, k, n in ((1, 1, 1), (3, 40, 72), (20, 530, 65), (2, 64, 130)):
        a, b = random(m, k, dtype=dtype), random(k, n, dtype=dtype)
        got = each_layout(f"mm {m} {k} {n}", ops.mm, a, b)
        must_be_close("mm", got, a.double() @ b.double())
        must_be_same("mm of weights", ops.mm(a, b.t().contiguous().t()), got)
        must_be_same("mm row", ops.mm(a[-1:], b), got[-1:])
    a, b = random(3, 5, 24, dtype=dtype), random(3, 24, 9, dtype=dtype)
    must_be_close("bmm", each_layout("bmm", ops.bmm, a, b), a.double() @ b.double())
    must_be_same("bmm", ops.bmm(a, b)[1], ops.mm(a[1], b[1]))
    must_be_same("bmm expanded", ops.bmm(a, b[:1].expand(3, 24, 9))[2], ops.mm(a[2], b[0]))
    for left, right in (
        ((7,), (7,)), ((7,), (7, 5)), ((5, 7), (7,)), ((4, 5, 7), (7, 3)), ((4, 5, 7), (4, 7, 3)),
        ((2, 1, 5, 7), (3, 7, 4)), ((1, 3, 5, 7), (2, 1, 7, 4)), ((0, 5, 7), (7, 3)),
        ((4, 5, 0), (4, 0, 3)), ((2, 2, 2, 1, 2, 3, 4), (2, 1, 2, 2, 1, 4, 2)),
    ):  # fmt: skip
        x, y = random(*left, dtype=dtype), random(*right, dtype=dtype)
        got = each_layout(f"matmul {left} {right}", ops.matmul, x, y)
        must_be_close("matmul", got, torch.matmul(x.double(), y.double()))
    x, w, bias = (
        random(2, 5, 33, dtype=dtype),
        random(70, 33, dtype=dtype),
        random(70, dtype=dtype),
    )
    got = each_layout("linear", ops.linear, x, w, bias)
    must_be_close("linear", got, x.double() @ w.double().t() + bias.double())
    packed = ops.pack(w)
    must_be_same("linear_packed", ops.linear_packed(x, packed, 70, bias), got)
    must_be_same(
        "linear_packed spaced",
        ops.linear_packed(spaced(x), packed, 70),
        ops.linear(x, w),
    )
    wide = random(130, 33, dtype=dtype)
    must_be_same(
        "linear_packed wide",
        ops.linear_packed(x, ops.pack(wide), 130),
        ops.linear(x, wide),
    )
    must_be_same("addmm", ops.addmm(bias, x[0], w.t()), ops.linear(x[0], w, bias))
    unread = ops.addmm(bias * torch.nan, x[0], w.t(), beta=0.0)
    must_be_same("addmm beta 0", unread, ops.mm(x[0], w.t()))
    c = random(5, 1, dtype=dtype)
    want = 0.5 * c.double() + 2 * (x[0].double() @ w.double().t())
    must_be_close("addmm", ops.addmm(c, x[0], w.t(), beta=0.5, alpha=2.0), want)


def rows(dtype: torch.dtype) -> None:
    """sum, mean, softmax, log_softmax, rms_norm, add_rms_norm."""
    ops = torch.ops.batch_invariant_ops
    x = random(3, 21, 4, dtype=dtype) / 8
    for name, keepdim in itertools.product(("sum", "mean"), (False, True)):
        for dim in ([0], [1], [-1], [0, 2], [2, 0], [0, 1], [1, 2], [0, 1, 2]):
            op = getattr(ops, name)
            got = each_layout(
                f"{name} {dim}", lambda t, op=op, d=dim, keep=keepdim: op(t, d, keep), x
            )
            must_be_close(name, got, getattr(x.double(), name)(dim, keepdim))
        must_be_close(name, getattr(ops, name)(x), getattr(x.double(), name)())
    for name, along in itertools.product(("softmax", "log_softmax"), (0, 1, 2, -1)):
        op = getattr(ops, name)
        got = each_layout(f"{name} {along}", lambda t, op=op, d=along: op(t, d), x)
        must_be_close(name, got, getattr(torch, name)(x.double(), along))
    image = random(2, 3, 4, 5, dtype=dtype).to(memory_format=torch.channels_last)
    must_be_same("softmax image", ops.softmax(image, 1), ops.softmax(image.contiguous(), 1))
    long = random(2, 17000, dtype=dtype)
    must_be_close("softmax long", ops.softmax(long, 1), torch.softmax(long.double(), 1))
    must_be_same("sum long", ops.sum(long, [1])[1:], ops.sum(long[1:], [1]))
    r = random(3, 21, 4, dtype=dtype)
    for shape in ([4], [21, 4], [3, 21, 4]):
        w = random(*shape, dtype=dtype)
        got = each_layout("rms_norm", lambda a, b, s=shape: ops.rms_norm(a, s, b, 1e-5), x, w)
        want = torch.nn.functional.rms_norm(x.double(), shape, w.double(), 1e-5)
        must_be_close("rms_norm", got, want)
        normed, added = ops.add_rms_norm(x, r, shape, w, 1e-5)
        must_be_same("added", added, x + r)
        must_be_same("add_rms_norm", normed, ops.rms_norm(x + r, shape, w, 1e-5))
        again = ops.add_rms_norm(spaced(x), turned(r), shape, spaced(w), 1e-5)
        must_be_same("add_rms_norm layout", again[0], normed)
        must_be_same("added layout", again[1], added)


def launches_that_fail(stage1: str) -> None:
    """What a launch answers arrives as an exception, and the next call is as before."""
    ops, refuse = torch.ops.batch_invariant_ops, ctypes.CDLL(stage1).invar_emulated_refuse
    x, w = random(3, 600), random(5, 600)
    calls: dict[str, Callable[[], Tensor]] = {
        "mm": lambda: ops.mm(x, w.t()),
        "linear": lambda: ops.linear(x, w),
        "pack": lambda: ops.pack(w),
        "sum": lambda: ops.sum(x, [1]),
        "softmax": lambda: ops.softmax(x, 1),
        "rms_norm": lambda: ops.rms_norm(x, [600]),
    }
    # NO_KERNEL and INVAR_CUDA_RUNTIME + cudaErrorLaunchFailure, of invar_cuda.h.
    for status, text in ((6, "invar build cuda --arch"), (1719, "no CUDA runtime")):
        for name, call in calls.items():
            want = call()
            refuse(ctypes.c_int32(status))
            try:
                call()
            except RuntimeError as error:
                if text not in str(error) or name.split("_")[0] not in str(error):
                    raise SystemExit(f"{name}, status {status}: {error}") from error
            else:
                raise SystemExit(f"{name}: a launch that failed with {status} raised nothing")
            finally:
                refuse(ctypes.c_int32(0))
            must_be_same(f"{name} after a failure", call(), want)


def nothing() -> None:
    """Sizes of zero."""
    ops, e = torch.ops.batch_invariant_ops, torch.empty
    assert ops.mm(e(0, 3), e(3, 4)).shape == (0, 4)
    assert torch.equal(ops.mm(e(2, 0), e(0, 3)), torch.zeros(2, 3))
    assert torch.equal(ops.addmm(torch.ones(3), e(2, 0), e(0, 3)), torch.ones(2, 3))
    assert torch.equal(ops.sum(e(2, 0), [1]), torch.zeros(2))
    assert bool(ops.mean(e(2, 0), [1]).isnan().all())
    assert ops.softmax(e(2, 0), 1).shape == (2, 0)
    assert ops.rms_norm(e(0, 4), [4]).shape == (0, 4)
    assert ops.pack(e(0, 4)).shape == (0, 4, 64)


def control() -> None:
    """The product that depends on the batch on purpose is seen."""
    ops = torch.ops.batch_invariant_ops
    x, w = random(9, 300), random(300, 40)
    whole = ops._control_mm(x, w)
    if all(same(ops._control_mm(x[:m], w), whole[:m]) for m in (1, 2, 3, 5, 7)):
        raise SystemExit("the control product does not depend on the number of rows")


def main() -> None:
    """Runs everything."""
    load(sys.argv[1], sys.argv[2])
    for dtype in DTYPES:
        products(dtype)
        rows(dtype)
    nothing()
    launches_that_fail(sys.argv[2])
    control()
    print("stage 2 on emulated kernels: all agree")


if __name__ == "__main__":
    main()
