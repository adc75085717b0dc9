"""Numbers, sizes, strides and refusals of torch.ops.batch_invariant_ops.*."""

from __future__ import annotations

import itertools

import pytest
import torch
from bits import DTYPES, close, same, spread
from torch import Tensor
from torch.nn import functional

import batch_invariant_ops  # noqa: F401

ops = torch.ops.batch_invariant_ops

each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d).removeprefix("torch."))


def unaligned(t: Tensor) -> Tensor:
    """The same values one element behind an aligned address."""
    flat = torch.empty(t.numel() + 1, dtype=t.dtype)[1:]
    return flat.copy_(t.reshape(-1)).view(t.shape)


def spaced(t: Tensor) -> Tensor:
    """The same values with gaps in every dimension."""
    big = torch.full([2 * s for s in t.shape], 3.0).to(t.dtype)
    view = big[tuple(slice(1, None, 2) for _ in t.shape)]
    return view.copy_(t)


def reversed_layout(t: Tensor) -> Tensor:
    """The same values with the dimensions stored in reverse."""
    order = list(range(t.dim()))[::-1]
    return t.permute(order).contiguous().permute(order)


LAYOUTS = (unaligned, spaced, reversed_layout)


@each_dtype
@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(1, 1, 1), (3, 5, 7), (1, 300, 130), (33, 129, 64), (70, 257, 65), (129, 40, 1), (2, 1000, 3)],
)
def test_mm(m: int, k: int, n: int, dtype: torch.dtype) -> None:
    a, b = spread(m, k, dtype=dtype), spread(k, n, dtype=dtype)
    got = ops.mm(a, b)
    close(got, a.double() @ b.double())
    for change in LAYOUTS:
        assert same(ops.mm(change(a), change(b)), got), change.__name__
    assert same(ops.mm(a.expand(m, k), b), got)


@each_dtype
def test_bmm_addmm_linear_pack(dtype: torch.dtype) -> None:
    a, b = spread(5, 9, 33, dtype=dtype), spread(5, 33, 70, dtype=dtype)
    got = ops.bmm(a, b)
    close(got, a.double() @ b.double())
    for change in LAYOUTS:
        assert same(ops.bmm(change(a), change(b)), got), change.__name__
    assert same(ops.bmm(a, b[:1].expand(5, 33, 70)), torch.stack([ops.mm(x, b[0]) for x in a]))

    x, w, bias = a[0], b[0].t(), spread(70, dtype=dtype)
    added = ops.addmm(bias, x, w.t(), beta=0.5, alpha=2.0)
    close(added, 0.5 * bias.double() + 2 * (x.double() @ w.t().double()))
    assert same(ops.addmm(bias, x, w.t()), ops.linear(x, w, bias))
    # beta = 0 leaves the addend unread.
    assert same(ops.addmm(bias * torch.nan, x, w.t(), beta=0.0), ops.mm(x, w.t()))
    for c in (spread(9, 70, dtype=dtype), spread(9, 1, dtype=dtype), spread(1, dtype=dtype)[0]):
        close(ops.addmm(c, x, w.t()), c.double() + x.double() @ w.t().double())

    packed = ops.pack(w)
    assert packed.shape == (2, 33, 64)
    for y in (x, x[0], a, spaced(a), reversed_layout(a)):
        assert same(ops.linear_packed(y, packed, 70, bias), ops.linear(y, w, bias))
        assert same(ops.linear_packed(y, packed, 70), ops.linear(y, w))
    assert same(ops.linear(x, spaced(w), spaced(bias)), ops.linear(x, w, bias))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((7,), (7,)),
        ((7,), (7, 5)),
        ((5, 7), (7,)),
        ((5, 7), (7, 3)),
        ((4, 5, 7), (7, 3)),
        ((4, 5, 7), (7,)),
        ((7,), (4, 7, 3)),
        ((4, 5, 7), (4, 7, 3)),
        ((2, 1, 5, 7), (3, 7, 4)),
        ((1, 3, 5, 7), (2, 1, 7, 4)),
        ((0, 5, 7), (7, 3)),
        ((4, 5, 0), (4, 0, 3)),
        ((4, 0, 7), (7, 3)),
    ],
)
def test_matmul(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    a, b = spread(*left), spread(*right)
    got = ops.matmul(a, b)
    close(got, torch.matmul(a.double(), b.double()))
    for change in LAYOUTS:
        assert same(ops.matmul(change(a), change(b)), got), change.__name__


DIMS: list[list[int] | None] = [None, [], [0], [-1], [1], [0, 2], [2, 0], [-3, -1], [1, 2]]


@each_dtype
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_reductions(name: str, dtype: torch.dtype) -> None:
    op = getattr(ops, name)
    x = spread(5, 67, 3, dtype=dtype)
    for dim, keepdim in itertools.product(DIMS, (False, True)):
        got = op(x, dim, keepdim)
        close(got, getattr(x.double(), name)(dim, keepdim) if dim else whole(x, name, keepdim))
        for change in LAYOUTS:
            assert same(op(change(x), dim, keepdim), got), (change.__name__, dim)
        wide = op(x, dim, keepdim, dtype=torch.float32)
        assert wide.dtype == torch.float32
        assert same(wide.to(dtype), got)
    assert same(op(x[0, 0, 0]), x[0, 0, 0])
    assert same(op(x[0, 0, 0], [-1], True), x[0, 0, 0])


def whole(x: Tensor, name: str, keepdim: bool) -> Tensor:
    value: Tensor = getattr(x.double(), name)()
    return value.view([1] * x.dim()) if keepdim else value


@each_dtype
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax(name: str, dtype: torch.dtype) -> None:
    op, x = getattr(ops, name), (spread(3, 131, 5) / 8).to(dtype)
    for dim in (0, 1, 2, -1, -2, -3):
        got = op(x, dim)
        close(got, getattr(torch, name)(x.double(), dim))
        for change in LAYOUTS:
            assert same(op(change(x), dim), got), (change.__name__, dim)
    assert same(op(x[0, 0, 0], 0), op(x[0, 0, :1], 0)[0])
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert op(image, 1).stride() == image.stride()
    assert same(op(image, 1), op(image.contiguous(), 1))
    assert op(x, 1, torch.float32).dtype == torch.float32


@each_dtype
def test_norms(dtype: torch.dtype) -> None:
    x, r = spread(4, 6, 65, dtype=dtype), spread(4, 6, 65, dtype=dtype)
    for shape in ([65], [6, 65], [4, 6, 65]):
        w = spread(*shape, dtype=dtype)
        got = ops.rms_norm(x, shape, w, 1e-5)
        close(got, functional.rms_norm(x.double(), shape, w.double(), 1e-5))
        for change in LAYOUTS:
            assert same(ops.rms_norm(change(x), shape, change(w), 1e-5), got), change.__name__
        close(ops.rms_norm(x, shape), functional.rms_norm(x.double(), shape, eps=2.0**-23))
        normed, added = ops.add_rms_norm(x, r, shape, w, 1e-5)
        assert same(added, x + r)
        close(normed, functional.rms_norm(x.double() + r.double(), shape, w.double(), 1e-5))
        for change in LAYOUTS:
            again = ops.add_rms_norm(change(x), spaced(r), shape, w, 1e-5)
            assert same(again[0], normed), change.__name__
            assert same(again[1], added), change.__name__


@each_dtype
def test_short_overloads(dtype: torch.dtype) -> None:
    """They give the bits of the whole forms, in every layout."""
    x, r, w = (spread(*size, dtype=dtype) for size in ((5, 6, 65), (5, 6, 65), (65,)))
    for change in (lambda t: t, *LAYOUTS):
        y = change(x)
        assert same(ops.sum.last(y), ops.sum(x, [-1]))
        assert same(ops.mean.last(y), ops.mean(x, [-1]))
        assert same(ops.softmax.last(y), ops.softmax(x, -1))
        assert same(ops.log_softmax.last(y), ops.log_softmax(x, -1))
        assert same(ops.rms_norm.last(y, change(w), 1e-5), ops.rms_norm(x, [65], w, 1e-5))
        short, whole = (
            ops.add_rms_norm.last(y, change(r), change(w), 1e-5),
            ops.add_rms_norm(x, r, [65], w, 1e-5),
        )
        assert same(short[0], whole[0])
        assert same(short[1], whole[1])


def test_torch_ops_takes_the_whole_form_first() -> None:
    """A call that fits the first overload costs nothing more for the others."""

    def taken(name: str, *args: object, **kwargs: object) -> str:
        return str(torch._C._jit_resolve_packet(f"batch_invariant_ops::{name}", *args, **kwargs))

    x = torch.randn(3, 4)
    for name in ("sum", "mean"):
        assert taken(name, x) == taken(name, x, -1) == taken(name, x, [0, 1], True) == "default"
    assert taken("softmax", x, -1) == taken("rms_norm", x, [4], x[0], 1e-5) == "default"
    assert taken("softmax", x) == taken("rms_norm", x, x[0], 1e-5) == "last"


def test_nothing_to_compute() -> None:
    e = torch.empty
    assert ops.mm(e(0, 3), e(3, 4)).shape == (0, 4)
    assert ops.mm(e(3, 4), e(4, 0)).shape == (3, 0)
    assert torch.equal(ops.mm(e(2, 0), e(0, 3)), torch.zeros(2, 3))
    assert torch.equal(ops.addmm(torch.ones(3), e(2, 0), e(0, 3)), torch.ones(2, 3))
    assert torch.equal(ops.bmm(e(2, 2, 0), e(2, 0, 3)), torch.zeros(2, 2, 3))
    assert ops.bmm(e(0, 2, 3), e(0, 3, 4)).shape == (0, 2, 4)
    assert ops.linear(e(0, 5), e(7, 5), e(7)).shape == (0, 7)
    assert ops.linear_packed(e(0, 5), ops.pack(torch.ones(7, 5)), 7).shape == (0, 7)
    assert ops.pack(e(0, 5)).shape == (0, 5, 64)
    assert torch.equal(ops.sum(e(3, 0), [1]), torch.zeros(3))
    assert torch.equal(ops.sum(e(0)), torch.zeros(()))
    assert ops.mean(e(3, 0), [1]).isnan().all()
    assert ops.sum(e(0, 3), [1]).shape == (0,)
    assert ops.softmax(e(3, 0), 1).shape == (3, 0)
    assert ops.softmax(e(0, 3), 1).shape == (0, 3)
    assert ops.rms_norm(e(0, 8), [8]).shape == (0, 8)
    assert ops.rms_norm(e(3, 0), [0]).shape == (3, 0)


def test_refusals() -> None:
    x, w = torch.randn(3, 5), torch.randn(5, 4)
    packed = ops.pack(w.t())
    cases = [
        (lambda: ops.mm(x, x), r"mm cannot combine .* self: float32 \[3, 5\]"),
        (lambda: ops.mm(x.double(), w.double()), "float32, bfloat16 and float16"),
        (lambda: ops.mm(x, w.half()), "operands of one dtype"),
        (lambda: ops.addmm(torch.randn(7), x, w), "addmm cannot combine"),
        (lambda: ops.bmm(x, w), "bmm cannot combine"),
        (lambda: ops.matmul(x, torch.tensor(1.0)), "matmul cannot combine"),
        (lambda: ops.linear(x, w, None), "linear cannot combine"),
        (lambda: ops.linear(x, w.t(), torch.randn(3)), "bias: float32"),
        (lambda: ops.linear_packed(x, packed, 65), "what pack"),
        (lambda: ops.linear_packed(x, packed.half(), 4), "operands of one dtype"),
        (lambda: ops.linear_packed(x[:, :4], packed, 4), "what pack"),
        (lambda: ops.pack(x[0]), "pack cannot combine"),
        (lambda: ops.sum(x, [2]), "sum cannot combine"),
        (lambda: ops.sum(x, [0, -2]), "sum cannot combine"),
        (lambda: ops.sum(x, 2), "sum cannot combine"),
        (lambda: ops.mean.last(x.long()), "mean has kernels for"),
        (lambda: ops.rms_norm.last(x, torch.randn(4), 1e-5), "weight must have the sizes"),
        (lambda: ops.rms_norm.last(torch.tensor(1.0), torch.randn(4), 1e-5), "normalized_shape"),
        (lambda: ops.add_rms_norm.last(x, x[:2], torch.randn(5), 1e-5), "the same sizes"),
        (lambda: ops.mean(x.long()), "mean has kernels for"),
        (lambda: ops.sum(x, dtype=torch.float64), "dtype asks for another"),
        (lambda: ops.softmax(x, 2), "softmax: dim 2 is out of range"),
        (lambda: ops.rms_norm(x, [4]), "normalized_shape"),
        (lambda: ops.rms_norm(x, []), "normalized_shape"),
        (lambda: ops.rms_norm(x, [5], torch.randn(4)), "weight must have the sizes"),
        (lambda: ops.add_rms_norm(x, x[:2], [5]), "the same sizes"),
    ]
    for call, text in cases:
        with pytest.raises(RuntimeError, match=text):
            call()


def test_special_values() -> None:
    inf, nan = float("inf"), float("nan")
    a = torch.tensor([[inf, 1.0], [nan, 1.0], [1e38, 1e38], [-0.0, 0.0]])
    b = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    got = ops.mm(a, b)
    assert got[0, 0] == inf
    assert got[1].isnan().all()
    # Every NaN is the canonical one.
    assert set(bits_of_nans(got)) <= {0x7FC00000}
    assert ops.softmax(torch.tensor([-inf, 0.0, -inf]), 0).tolist() == [0.0, 1.0, 0.0]
    assert ops.sum(torch.tensor([inf, -inf])).isnan()


def bits_of_nans(t: Tensor) -> list[int]:
    return [int(v) for v in t[t.isnan()].view(torch.int32)]


def test_more_elements_than_int32() -> None:
    """Offsets past 2**31 elements, in a tensor of which most is never touched."""
    far = torch.empty(2**31 + 64, dtype=torch.bfloat16)
    tail = far[-64:].copy_(torch.arange(64))
    assert float(ops.sum(tail)) == float(torch.arange(64).sum())
    rows = far.as_strided((2, 64), (2**31, 1))
    rows[0].fill_(1)
    assert ops.sum(rows, [1]).tolist() == [64.0, 2016.0]
    got = ops.mm(rows, torch.ones(64, 1, dtype=torch.bfloat16))
    assert got.flatten().tolist() == [64.0, 2016.0]
