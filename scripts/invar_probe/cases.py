"""How each family of operators is called, row by row.

A case binds one operator, dtype and shape to a pool of input rows. Row i of the
pool is independent of the others, so the bits of its result must be the same in
every batch that holds it. A family knows the call, the same call with the
reduction the other way round, and what to expect in float64.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from . import inputs, reference
from .reference import Expected

Tensors = tuple[torch.Tensor, ...]
Operator = Callable[..., Any]
Call = Callable[[torch.Tensor, Tensors], Tensors]


@dataclass
class Spec:
    """One line of the schedule: an operator and the shape to call it with."""

    operator: str
    family: str
    size: int  # elements in the reduction
    columns: int = 1  # columns of the result, where they are free
    pool: int = 0  # most rows; 0 is as many as the schedule asks for
    needs: tuple[str, ...] = ()  # further operators that the call makes
    routed: str = ""  # torch function that must reach the same kernel

    def is_torch(self) -> bool:
        """Whether this is a function of torch, which reaches the kernels by routing."""
        return self.operator.startswith("torch:")

    def label(self) -> str:
        """The spec as a short text for a person."""
        shape = f"{self.size}x{self.columns}" if self.columns > 1 else str(self.size)
        return f"{self.operator} {self.family} {shape}"


@dataclass
class Case:
    """One operator with everything needed to call it on any rows of its pool."""

    spec: Spec
    dtype: torch.dtype
    pool: torch.Tensor
    fixed: Tensors
    call: Call
    expect: Callable[[torch.Tensor, Tensors], tuple[Expected, ...]]
    flip_rows: tuple[int, ...] = (-1,)
    flip_fixed: tuple[tuple[int, ...], ...] = ()
    flip_out: tuple[int, ...] = ()
    routed: Call | None = None
    nudged: bool = False  # no order to turn: the control moves the input

    def reordered(self, by: int) -> Tensors:
        """Results with the reduction in another order: backwards, then rotated."""

        def turn(t: torch.Tensor, dims: tuple[int, ...], sign: int) -> torch.Tensor:
            if not dims:
                return t
            # Backwards first, then rotated; undone in the opposite sequence.
            if sign > 0:
                return t.flip(dims).roll([by] * len(dims), dims)
            return t.roll([-by] * len(dims), dims).flip(dims)

        if self.nudged:
            moved = self.pool * (1 + 4 * by * torch.finfo(self.pool.dtype).eps)
            return self.call(moved, self.fixed)
        fixed = tuple(turn(f, d, 1) for f, d in zip(self.fixed, self.flip_fixed, strict=True))
        outputs = self.call(turn(self.pool, self.flip_rows, 1), fixed)
        return tuple(turn(o, self.flip_out, -1) for o in outputs)


@dataclass
class Maker:
    """Makes the tensors of one case."""

    spec: Spec
    dtype: torch.dtype
    rows: int
    seed: int
    cancelling: bool

    def __post_init__(self) -> None:
        # Another stream than that of the shared rows.
        self.gen = inputs.generator(self.seed + 1)

    def weights(self, *shape: int) -> torch.Tensor:
        """Values of both signs, not far from 1."""
        return torch.randn(shape, generator=self.gen).to(self.dtype)

    def rows_and_matrix(self, *middle: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows and a matrix [..., size, columns] whose product cancels in part."""
        shape = (self.rows, *middle, self.spec.size)
        return _rows_and_matrix(shape, self.spec.columns, self.dtype, self.seed, self.cancelling)

    def hidden(self) -> torch.Tensor:
        """Rows of a norm."""
        if not self.cancelling:
            return self.weights(self.rows, self.spec.size)
        return inputs.hidden((self.rows, self.spec.size), self.dtype, self.gen, EPS)

    def terms(self, *shape: int) -> torch.Tensor:
        """Rows to be summed over all of shape."""
        if not self.cancelling:
            return self.weights(self.rows, *shape)
        flat = 1
        for s in shape:
            flat *= s
        x = inputs.spread((self.rows, flat), self.dtype, self.gen)
        return inputs.cancel(x, inputs.pairs(flat, self.gen)).reshape(self.rows, *shape)


@functools.cache  # several operators take the same; nobody writes into them
def _rows_and_matrix(
    shape: tuple[int, ...], columns: int, dtype: torch.dtype, seed: int, cancelling: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    gen = inputs.generator(seed)
    size = shape[-1]
    w = torch.randn((*shape[1:], columns), generator=gen).to(dtype)
    if not cancelling:
        return torch.randn(shape, generator=gen).to(dtype), w
    where = inputs.pairs(size, gen)
    w[..., where[1], :] = w[..., where[0], :]
    return inputs.cancel(inputs.spread(shape, dtype, gen), where), w


def product(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x, w): mm, matmul."""
    x, w = m.rows_and_matrix()
    return Case(
        m.spec, m.dtype, x, (w,),
        call=lambda x, f: (op(x, f[0]),),
        expect=lambda x, f: (reference.product(x, f[0], x.dtype),),
        flip_fixed=((0,),),
    )  # fmt: skip


def broadcast(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x[rows, 1, size], w): matmul of more than two dimensions."""
    x, w = m.rows_and_matrix()
    return Case(
        m.spec, m.dtype, x.unsqueeze(1), (w,),
        call=lambda x, f: (op(x, f[0]),),
        expect=lambda x, f: (reference.product(x, f[0], x.dtype),),
        flip_fixed=((0,),),
    )  # fmt: skip


def affine(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(bias, x, w, beta, alpha): addmm with a beta that is not 1."""
    x, w = m.rows_and_matrix()
    alpha, beta = 1.5, 0.5
    return Case(
        m.spec, m.dtype, x, (w, m.weights(m.spec.columns)),
        call=lambda x, f: (op(f[1], x, f[0], beta=beta, alpha=alpha),),
        expect=lambda x, f: (reference.affine(x, f[0], f[1], alpha, beta),),
        flip_fixed=((0,), ()),
    )  # fmt: skip


def linear(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x, w[columns, size], bias)."""
    x, w = m.rows_and_matrix()
    return Case(
        m.spec, m.dtype, x, (w.t().contiguous(), m.weights(m.spec.columns)),
        call=lambda x, f: (op(x, f[0], f[1]),),
        expect=lambda x, f: (reference.affine(x, f[0].t(), f[1], 1.0, 1.0),),
        flip_fixed=((1,), ()),
    )  # fmt: skip


def packed(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x, pack(w), columns, bias): weights packed once, used many times."""
    x, w = m.rows_and_matrix()
    pack, columns = more[0], m.spec.columns
    kept: dict[int, tuple[torch.Tensor, Any]] = {}

    def call(x: torch.Tensor, f: Tensors) -> Tensors:
        # The tensor is kept with its pack, so that its id stays its own.
        key = id(f[0])
        if key not in kept:
            kept[key] = (f[0], pack(f[0]))
        return (op(x, kept[key][1], columns, f[1]),)

    return Case(
        m.spec, m.dtype, x, (w.t().contiguous(), m.weights(columns)),
        call=call,
        expect=lambda x, f: (reference.affine(x, f[0].t(), f[1], 1.0, 1.0),),
        flip_fixed=((1,), ()),
    )  # fmt: skip


def vector(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x, w[size]): mv."""
    x, w = m.rows_and_matrix()
    return Case(
        m.spec, m.dtype, x, (w[:, 0].contiguous(),),
        call=lambda x, f: (op(x, f[0]).unsqueeze(1),),
        expect=lambda x, f: (reference.product(x, f[0].unsqueeze(1), x.dtype),),
        flip_fixed=((0,),),
    )  # fmt: skip


BATCH = 3


def batched_rows(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x[3, rows, size], w[3, size, columns]): the rows of bmm vary."""
    x, w = m.rows_and_matrix(BATCH)
    return Case(
        m.spec, m.dtype, x, (w,),
        call=lambda x, f: (op(x.transpose(0, 1), f[0]).transpose(0, 1),),
        expect=lambda x, f: (_turned(reference.product(x.transpose(0, 1), f[0], x.dtype)),),
        flip_fixed=((1,),),
    )  # fmt: skip


def batched_affine(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(bias, x[3, rows, size], w[3, size, columns], beta, alpha): baddbmm."""
    x, w = m.rows_and_matrix(BATCH)
    alpha, beta = 1.5, 0.5
    return Case(
        m.spec, m.dtype, x, (w, m.weights(m.spec.columns)),
        call=lambda x, f: (
            op(f[1], x.transpose(0, 1), f[0], beta=beta, alpha=alpha).transpose(0, 1),
        ),
        expect=lambda x, f: (
            _turned(reference.affine(x.transpose(0, 1), f[0], f[1], alpha, beta)),
        ),
        flip_fixed=((1,), ()),
    )  # fmt: skip


def batched(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x[rows, 3, size], w[rows, size, columns]): the batch of bmm varies."""
    size, columns = m.spec.size, m.spec.columns
    x = m.weights(m.rows, BATCH, size)
    w = m.weights(m.rows, columns, size)
    if m.cancelling:
        where = inputs.pairs(size, m.gen)
        x = inputs.cancel(inputs.spread((m.rows, BATCH, size), m.dtype, m.gen), where)
        w[..., where[1]] = w[..., where[0]]
    rows = torch.cat((x, w), dim=1)

    def split(r: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return r[:, :BATCH], r[:, BATCH:].transpose(1, 2)

    return Case(
        m.spec, m.dtype, rows, (),
        call=lambda r, f: (op(*split(r)),),
        expect=lambda r, f: (reference.product(*split(r), r.dtype),),
    )  # fmt: skip


def reduce(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x, [-1]): sum and mean of the last dimension."""
    mean = "mean" in m.spec.operator
    return Case(
        m.spec, m.dtype, m.terms(m.spec.size), (),
        call=lambda x, f: (op(x, [-1], False).unsqueeze(1),),
        expect=lambda x, f: (_column(reference.total(x, (1,), mean)),),
    )  # fmt: skip


def reduce_first(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x[size, rows], [0]): neighbours lie side by side in memory."""
    mean = "mean" in m.spec.operator
    return Case(
        m.spec, m.dtype, m.terms(m.spec.size), (),
        call=lambda x, f: (op(x.t().contiguous(), [0], False).unsqueeze(1),),
        expect=lambda x, f: (_column(reference.total(x, (1,), mean)),),
    )  # fmt: skip


def reduce_two(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x[rows, 6, size], [1, 2]): two dimensions at once."""
    mean = "mean" in m.spec.operator
    return Case(
        m.spec, m.dtype, m.terms(6, m.spec.size), (),
        call=lambda x, f: (op(x, [1, 2], False).unsqueeze(1),),
        expect=lambda x, f: (_column(reference.total(x, (1, 2), mean)),),
        flip_rows=(1, 2),
    )  # fmt: skip


def softmax(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x, -1): softmax and log_softmax of the last dimension."""
    log = "log_softmax" in m.spec.operator
    return Case(
        m.spec, m.dtype, inputs.logits((m.rows, m.spec.size), m.dtype, m.gen), (),
        call=lambda x, f: (op(x, -1),),
        expect=lambda x, f: (reference.softmax(x, 1, log),),
        flip_out=(1,),
    )  # fmt: skip


def softmax_first(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x[size, rows], 0): neighbours lie side by side in memory."""
    log = "log_softmax" in m.spec.operator
    return Case(
        m.spec, m.dtype, inputs.logits((m.rows, m.spec.size), m.dtype, m.gen), (),
        call=lambda x, f: (op(x.t().contiguous(), 0).t(),),
        expect=lambda x, f: (reference.softmax(x, 1, log),),
        flip_out=(1,),
    )  # fmt: skip


# Keys that every row of attention sees, and heads.
SEEN, HEADS = 90, 4


def attention(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(q[rows, 1, size], k, v, heads and scale): every row sees the same keys.

    Turned round are the keys with their values: the order of the sums changes and
    the result does not.
    """
    size = m.spec.size
    scale = (size // HEADS) ** -0.5
    k, v = m.weights(SEEN, size), m.weights(SEEN, size)
    if m.cancelling:
        # Every other key is its neighbour again, with the value's sign turned: they
        # cancel in the sum over keys, and only the rounding on the way is left.
        k[1::2], v[1::2] = k[::2], -inputs.spread((SEEN // 2, size), m.dtype, m.gen)
        v[::2] = -v[1::2]
        v[::2] += m.weights(SEEN // 2, size) * 2.0**-4

    def call(x: torch.Tensor, f: Tensors) -> Tensors:
        k, v = (t.unsqueeze(0).expand(x.shape[0], -1, -1).contiguous() for t in f)
        out = op(x.unsqueeze(1), k, v, num_heads=HEADS, scale=scale, input_layout="BSH")
        return (out[0].squeeze(1),)

    return Case(
        m.spec, m.dtype, m.weights(m.rows, size), (k, v),
        call=call,
        expect=lambda x, f: (reference.attention(x, f[0], f[1], HEADS, scale),),
        flip_rows=(), flip_fixed=((0,), (0,)),
    )  # fmt: skip


EPS = 1e-6


def norm(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x, [size], weight, eps): rms_norm."""
    return Case(
        m.spec, m.dtype, m.hidden(), (m.weights(m.spec.size),),
        call=lambda x, f: (op(x, [x.shape[-1]], f[0], EPS),),
        expect=lambda x, f: (reference.rms_norm(x, f[0], EPS),),
        flip_fixed=((0,),), flip_out=(1,),
    )  # fmt: skip


def add_norm(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x, residual, [size], weight, eps): add_rms_norm with its two outputs."""
    x = m.hidden()
    # Exact in every dtype, and so is the sum, which is what was tuned.
    both = torch.stack((2 * x, -x), dim=1) if m.cancelling else m.weights(m.rows, 2, m.spec.size)
    return Case(
        m.spec, m.dtype, both, (m.weights(m.spec.size),),
        call=lambda x, f: tuple(op(x[:, 0], x[:, 1], [x.shape[-1]], f[0], EPS)),
        expect=lambda x, f: reference.add_rms_norm(x[:, 0], x[:, 1], f[0], EPS),
        flip_fixed=((0,),), flip_out=(1,),
    )  # fmt: skip


def rows(op: Operator, more: list[Operator], m: Maker) -> Case:
    """op(x): any function of rows, elementwise or reducing.

    Nobody knows what it reduces over, so its control moves the input instead: the
    few smallest steps, how many depending on the batch.
    """
    x = m.weights(m.rows, m.spec.size)
    return Case(
        m.spec, m.dtype, x, (),
        call=lambda x, f: (_as_rows(op(x), x),),
        expect=lambda x, f: (),
        nudged=True,
    )  # fmt: skip


def _as_rows(out: Any, x: torch.Tensor) -> torch.Tensor:
    if not isinstance(out, torch.Tensor) or out.dim() == 0 or out.shape[0] != x.shape[0]:
        got = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise ValueError(f"want a tensor with one row for each of {x.shape[0]} rows, got {got}")
    return out if out.dim() > 1 else out.unsqueeze(1)


Family = Callable[[Operator, list[Operator], Maker], Case]

FAMILIES: dict[str, Family] = {
    f.__name__: f
    for f in (
        product, broadcast, affine, linear, packed, vector, batched_rows, batched_affine, batched,
        reduce, reduce_first, reduce_two, softmax, softmax_first, norm, add_norm, attention, rows,
    )
}  # fmt: skip


def make(
    spec: Spec,
    dtype: torch.dtype,
    rows: int,
    seed: int,
    resolve: Callable[[str], Operator],
    cancelling: bool = True,
) -> Case:
    """Builds the case of spec; resolve finds an operator by name."""
    if spec.family not in FAMILIES:
        raise ValueError(f"unknown family {spec.family!r}; want one of {', '.join(FAMILIES)}")
    count = min(rows, spec.pool) if spec.pool else rows
    maker = Maker(spec, dtype, count, seed, cancelling)
    more = [resolve(n) for n in spec.needs]
    return FAMILIES[spec.family](resolve(spec.operator), more, maker)


def through(case: Case, name: str, resolve: Callable[[str], Operator]) -> Call:
    """The call of case made through another operator with the same arguments."""
    # The family wants a maker, whose tensors nobody looks at here.
    small = Maker(case.spec, case.dtype, 4, 0, False)
    more = [resolve(n) for n in case.spec.needs]
    return FAMILIES[case.spec.family](resolve(name), more, small).call


def _column(e: Expected) -> Expected:
    return Expected(e.value.unsqueeze(1), e.allowed.unsqueeze(1))


def _turned(e: Expected) -> Expected:
    return Expected(e.value.transpose(0, 1), e.allowed.transpose(0, 1))
