"""The point of it all: the bits of a row do not depend on what is computed beside it."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch
from bits import DTYPES, same, spread
from torch import Tensor

import batch_invariant_ops as bio

ops = torch.ops.batch_invariant_ops
ROWS = (1, 2, 3, 5, 6, 7, 12, 13, 17, 33, 64, 65, 129, 257, 300)
TOTAL = max(ROWS)
LEVELS = ("baseline", "avx2", "avx512", "neon")

Op = Callable[[Tensor], Tensor]


def row_ops(dtype: torch.dtype, k: int) -> dict[str, Op]:
    """Operators of rows [m, k], each with its other operands fixed."""
    w, bias, gain = spread(90, k, dtype=dtype), spread(90, dtype=dtype), spread(k, dtype=dtype)
    packed = ops.pack(w)
    return {
        "mm": lambda x: ops.mm(x, w.t()),
        "mm narrow": lambda x: ops.mm(x, w[:3].t()),
        "matmul vector": lambda x: ops.matmul(x, w[0])[:, None],
        "addmm": lambda x: ops.addmm(bias, x, w.t(), beta=0.5, alpha=1.5),
        "linear": lambda x: ops.linear(x, w, bias),
        "linear_packed": lambda x: ops.linear_packed(x, packed, 90, bias),
        "bmm": lambda x: ops.bmm(x[None], w.t()[None])[0],
        "bmm batch": lambda x: ops.bmm(x[:, None], w.t().expand(len(x), k, 90))[:, 0],
        "sum": lambda x: ops.sum(x, [1], True),
        "sum dim 0": lambda x: ops.sum(x.t(), [0])[:, None],
        "mean": lambda x: ops.mean(x, [1], True),
        "softmax": lambda x: ops.softmax(x, 1),
        "softmax dim 0": lambda x: ops.softmax(x.t().contiguous(), 0).t(),
        "log_softmax": lambda x: ops.log_softmax(x, 1),
        "rms_norm": lambda x: ops.rms_norm(x, [k], gain, 1e-6),
        "add_rms_norm": lambda x: ops.add_rms_norm(x, x * 0.5, [k], gain, 1e-6)[0],
    }


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d).removeprefix("torch."))
@pytest.mark.parametrize("k", [90, 515])
def test_rows(k: int, dtype: torch.dtype) -> None:
    x = spread(TOTAL, k, dtype=dtype)
    for name, op in row_ops(dtype, k).items():
        whole = op(x)
        for m in ROWS:
            for first in {0, (TOTAL - m) // 2, TOTAL - m}:
                assert same(op(x[first : first + m]), whole[first : first + m]), (name, m, first)


def test_neighbours_and_position() -> None:
    k = 515
    needle = spread(1, k)
    for name, op in row_ops(torch.float32, k).items():
        alone = op(needle)
        for filler in (0.0, 1e30, -1e-30):
            for position in (0, 1, 7, 64, 129):
                x = torch.full((130, k), filler)
                x[position] = needle[0]
                assert same(op(x)[position : position + 1], alone), (name, filler, position)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d).removeprefix("torch."))
def test_threads_and_levels(dtype: torch.dtype) -> None:
    x = spread(TOTAL, 515, dtype=dtype)
    cases = row_ops(dtype, 515)
    want = {name: op(x) for name, op in cases.items()}
    tried = []
    for level in LEVELS:
        try:
            bio.select_isa(level)
        except RuntimeError:
            continue
        tried.append(level)
        assert bio.isa() == level
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            for name, op in cases.items():
                assert same(op(x), want[name]), (name, level, threads)
    assert len(tried) > 1, f"only {tried} can be compared on this machine"


def test_order_shows_in_these_inputs() -> None:
    """Vacuity: reversing the reduction changes bits, so the tests above could have failed."""
    for dtype in DTYPES:
        x = spread(TOTAL, 515, dtype=dtype)
        w = spread(515, 90, dtype=dtype)
        assert not same(ops.mm(x, w), ops.mm(x.flip(1), w.flip(0)))
    x = spread(TOTAL, 515)
    assert not same(ops.sum(x, [1]), ops.sum(x.flip(1), [1]))


def test_control_fails() -> None:
    """The product that depends on the batch on purpose is seen."""
    x, w = spread(TOTAL, 515), spread(515, 90)
    whole = ops._control_mm(x, w)
    wrong = [m for m in ROWS if not same(ops._control_mm(x[:m], w), whole[:m])]
    assert len(wrong) > len(ROWS) // 2


def flushes() -> bool:
    """Whether this thread's own arithmetic loses denormals."""
    return float(torch.tensor([1e-40]).mul(1.0)) == 0.0


def test_rounding_state_of_a_thread_does_not_matter() -> None:
    """torch.set_flush_denormal reaches one thread: the results of all are the same bits.

    The rows are split over torch's pool, whose threads are not set, while the caller
    is; and four callers at once are set by turns.
    """
    torch.set_num_threads(2)
    x = spread(TOTAL, 515)
    x = x / x.abs().max() * 1e-39
    assert 0 < float(x.abs().max()) < 2.0**-126  # denormal throughout
    half, gain = x * 0.5, spread(515)  # torch's own arithmetic loses them in a thread that is set
    cases = row_ops(torch.float32, 515)
    cases["add_rms_norm"] = lambda x: ops.add_rms_norm(x, half, [515], gain, 1e-6)[0]
    want = {name: op(x) for name, op in cases.items()}
    assert any(bool((w != 0).logical_and(w.abs() < 2.0**-126).any()) for w in want.values())
    seen: dict[int, tuple[bool, list[str]]] = {}

    def caller(number: int) -> None:
        assert torch.set_flush_denormal(number % 2 == 0)
        try:
            wrong = [name for name, op in cases.items() if not same(op(x), want[name])]
            seen[number] = (flushes(), wrong)  # after the calls: the state was given back
        finally:
            torch.set_flush_denormal(False)

    caller(0)
    threads = [threading.Thread(target=caller, args=(n,)) for n in range(1, 5)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == {n: (n % 2 == 0, []) for n in range(5)}


def test_quick_check() -> None:
    checks = bio.quick_check()
    assert [c.name for c in checks if not c.ok] == []
    assert checks[-1].name == "control"
