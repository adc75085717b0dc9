"""enable(), disable(): which calls are routed, and that the rest reaches the original."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from bits import DTYPES, close, same, spread
from calls import counts, during
from torch import Tensor
from torch.nn import functional

import batch_invariant_ops as bio

ops = torch.ops.batch_invariant_ops
OFF = "routing is disabled"


def cases(dtype: torch.dtype) -> dict[str, tuple[Callable[[], Tensor], Callable[[], Tensor], str]]:
    """By name: the call, what it must give, and the route that must take it."""
    a, b, v = spread(33, 70, dtype=dtype), spread(70, 50, dtype=dtype), spread(70, dtype=dtype)
    c, batch = spread(50, dtype=dtype), spread(3, 11, 70, dtype=dtype)
    wide = b.expand(3, 70, 50)

    def empty(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=dtype)

    mm, sums = ops.mm(a, b), ops.sum(a, [1])
    added = ops.addmm(c, a, b, beta=0.5, alpha=2.0)
    soft, log = ops.softmax(a, 1), ops.log_softmax(a, 0)
    mv, dot = ops.matmul(a, v), ops.matmul(a[0], v)
    many = ops.bmm(batch, wide)
    mixed: dict[str, Any] = {"beta": 0.5, "alpha": 2.0}
    plus = torch.stack([ops.addmm(c, x, b, beta=0.5, alpha=2.0) for x in batch])
    mv_added = ops.addmm(a[:, :1], a, v[:, None], beta=0.5, alpha=2.0)[:, 0]
    start = a[:, :1].expand(33, 50)
    grown = ops.addmm(start, a, b, beta=0.5, alpha=2.0)
    start3 = batch[:, :, :1].expand(3, 11, 50)
    grown3 = torch.stack(
        [ops.addmm(m, x, b, beta=0.5, alpha=2.0) for m, x in zip(start3, batch, strict=True)]
    )
    return {
        "mm": (lambda: torch.mm(a, b), lambda: mm, "mm"),
        "mm out": (lambda: torch.mm(a, b, out=empty(33, 50)), lambda: mm, "mm.out"),
        "mm out empty": (lambda: torch.mm(a, b, out=empty(0)), lambda: mm, "mm.out"),
        "mm out strided": (lambda: torch.mm(a, b, out=empty(50, 33).t()), lambda: mm, "mm.out"),
        "addmm": (lambda: torch.addmm(c, a, b, **mixed), lambda: added, "addmm"),
        "addmm out": (
            lambda: torch.addmm(c, a, b, out=empty(33, 50), **mixed),
            lambda: added,
            "addmm.out",
        ),
        "addmm_": (lambda: start.clone().addmm_(a, b, **mixed), lambda: grown, "addmm_"),
        "bmm": (lambda: torch.bmm(batch, wide), lambda: many, "bmm"),
        "bmm out": (lambda: torch.bmm(batch, wide, out=empty(3, 11, 50)), lambda: many, "bmm.out"),
        "baddbmm": (lambda: torch.baddbmm(c, batch, wide, **mixed), lambda: plus, "baddbmm"),
        "baddbmm out": (
            lambda: torch.baddbmm(c, batch, wide, out=empty(0), **mixed),
            lambda: plus,
            "baddbmm.out",
        ),
        "baddbmm_": (
            lambda: start3.clone().baddbmm_(batch, wide, **mixed),
            lambda: grown3,
            "baddbmm_",
        ),
        "mv": (lambda: torch.mv(a, v), lambda: mv, "mv"),
        "mv out": (lambda: torch.mv(a, v, out=empty(33)), lambda: mv, "mv.out"),
        "addmv": (lambda: torch.addmv(a[:, 0], a, v, **mixed), lambda: mv_added, "addmv"),
        "addmv out": (
            lambda: torch.addmv(a[:, 0], a, v, out=empty(33), **mixed),
            lambda: mv_added,
            "addmv.out",
        ),
        "addmv_": (lambda: a[:, 0].clone().addmv_(a, v, **mixed), lambda: mv_added, "addmv_"),
        "dot": (lambda: torch.dot(a[0], v), lambda: dot, "dot"),
        "dot out": (lambda: torch.dot(a[0], v, out=empty()), lambda: dot, "dot.out"),
        "vdot": (lambda: torch.vdot(a[0], v), lambda: dot, "vdot"),
        "softmax": (lambda: a.softmax(1), lambda: soft, "_softmax"),
        "softmax out": (
            lambda: torch.softmax(a, 1, out=empty(33, 70)),
            lambda: soft,
            "_softmax.out",
        ),
        "log_softmax": (lambda: a.log_softmax(0), lambda: log, "_log_softmax"),
        "sum": (a.sum, lambda: ops.sum(a), "sum.dim_IntList"),
        "sum dim": (lambda: a.sum(1), lambda: sums, "sum.dim_IntList"),
        "sum out": (lambda: torch.sum(a, 1, out=empty(33)), lambda: sums, "sum.IntList_out"),
        "mean": (a.mean, lambda: ops.mean(a), "mean.dim"),
        "mean dims": (
            lambda: batch.mean((0, 2), True),
            lambda: ops.mean(batch, [0, 2], True),
            "mean.dim",
        ),
        "mean out": (lambda: torch.mean(a, 1, out=empty(33)), lambda: ops.mean(a, [1]), "mean.out"),
    }


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d).removeprefix("torch."))
def test_routed_calls_give_the_invariant_bits(dtype: torch.dtype) -> None:
    for name, (call, want, route) in cases(dtype).items():
        expected = want()
        with bio.enabled():
            got, routed, original = during(call)
        assert same(got, expected), name
        assert routed == {route: 1}, name
        assert original == {}, name


def test_every_route_is_tried() -> None:
    tried = {route for _, _, route in cases(torch.float32).values()}
    # vdot.out and _log_softmax.out are the same code as dot.out and _softmax.out.
    assert {r.name for r in bio.report().routes} - tried == {"vdot.out", "_log_softmax.out"}
    x, v = spread(9, 40), spread(40)
    with bio.enabled():
        out = torch.empty(9, 40)
        _, routed, _ = during(lambda: torch._log_softmax(x, 1, False, out=out))
        assert routed == {"_log_softmax.out": 1}
        assert same(out, ops.log_softmax(x, 1))
        scalar = torch.empty(())
        _, routed, _ = during(lambda: torch.vdot(x[0], v, out=scalar))
        assert routed == {"vdot.out": 1}
        assert same(scalar, ops.matmul(x[0], v))


UNROUTED = (torch.float64, torch.int64, torch.int32, torch.complex64, torch.complex128)


@pytest.mark.parametrize("dtype", UNROUTED, ids=lambda d: str(d).removeprefix("torch."))
def test_other_dtypes_reach_the_original(dtype: torch.dtype) -> None:
    a = (torch.randn(6, 8) * 5).to(dtype)
    b = (torch.randn(8, 4) * 5).to(dtype)

    def calls() -> list[Tensor]:
        results = [
            torch.mm(a, b),
            torch.addmm(b[0], a, b, beta=2, alpha=3),
            b[:1].expand(6, 4).clone().addmm_(a, b),
            torch.bmm(a[None], b[None]),
            torch.mv(a, b[:, 0]),
            torch.dot(a[0], a[1]),
            torch.vdot(a[0], a[1]),
            a.sum(),
            a.sum((0, 1), True),
            torch.mm(a, b, out=torch.empty(0, dtype=dtype)),
        ]
        if dtype.is_floating_point:
            results += [a.mean(), a.mean(1), a.softmax(1), a.log_softmax(0)]
        return results

    want = calls()
    with bio.enabled():
        got, routed, original = during(calls)
    assert routed == {}
    assert {"mm", "addmm", "addmm_", "bmm", "mv", "dot", "vdot", "sum.dim_IntList"} <= set(original)
    assert all("float32" in reason for reasons in original.values() for reason in reasons)
    for x, y in zip(got, want, strict=True):
        assert x.dtype == y.dtype
        assert torch.equal(x, y)


def test_more_ways_to_the_original() -> None:
    x, flags = torch.randn(6, 8), torch.randn(6, 8) > 0
    table: list[tuple[Callable[[], Any], str, str]] = [
        (flags.sum, "sum.dim_IntList", "float32"),
        (lambda: flags.sum(1, dtype=torch.float32), "sum.dim_IntList", "float32"),
        (lambda: x.sum(dtype=torch.float64), "sum.dim_IntList", "dtype="),
        (lambda: x.mean(1, dtype=torch.float64), "mean.dim", "dtype="),
        (
            lambda: torch.sum(x, 1, out=torch.empty(6, dtype=torch.float64)),
            "sum.IntList_out",
            "out= has",
        ),
        (lambda: torch.sum(x.long(), 1, out=torch.empty(6)), "sum.IntList_out", "float32"),
    ]
    for call, route, reason in table:
        want = call()
        with bio.enabled():
            got, routed, original = during(call)
        assert torch.equal(got, want)
        assert route in original, (route, original, routed)
        assert any(reason in text for text in original[route])


def test_errors_are_torchs_own() -> None:
    x, b = torch.randn(6, 8), torch.randn(3)
    bad: list[Callable[[], Any]] = [
        lambda: torch.mm(x, x),
        lambda: torch.mm(x, x.double()),
        lambda: torch.addmm(b, x, x.t()),
        lambda: torch.bmm(x, x),
        lambda: x.sum(5),
        lambda: x.sum((0, 0)),
        lambda: x.softmax(2),
        lambda: torch.mv(x, b),
        lambda: torch.dot(b, x[0]),
        lambda: torch.mm(x, x.t(), out=torch.empty(6, 6, dtype=torch.float64)),
        lambda: x.long().mean(),
    ]
    for call in bad:
        with pytest.raises((RuntimeError, IndexError)) as stock:
            call()
        with bio.enabled(), pytest.raises((RuntimeError, IndexError)) as routed:
            call()
        first = str(stock.value).splitlines()[0]
        assert first in str(routed.value), (first, str(routed.value))


def test_disable_gives_torch_back() -> None:
    x, w = torch.randn(6, 300), torch.randn(300, 40)
    want = torch.mm(x, w)
    table = torch._C._dispatch_dump_table("aten::mm")
    bio.enable()
    assert torch._C._dispatch_dump_table("aten::mm") != table
    bio.disable()
    got, routed, original = during(lambda: torch.mm(x, w))
    assert torch.equal(got, want)
    assert routed == {}
    if threading.active_count() == 1:
        assert original == {}
        assert torch._C._dispatch_dump_table("aten::mm") == table
    else:
        assert original == {"mm": {OFF: 1}}


def test_nesting() -> None:
    assert not bio.is_enabled()
    bio.disable()  # nothing to take back
    bio.enable()
    with bio.enabled():
        bio.enable()
        bio.disable()
        assert bio.is_enabled()
    assert bio.is_enabled()
    bio.disable()
    assert not bio.is_enabled()
    with pytest.raises(ValueError, match="through"), bio.enabled():
        raise ValueError("through")
    assert not bio.is_enabled()


def test_threads_see_one_switch() -> None:
    """Routing of one thread's context ends with that context, not with another thread's."""
    x, w = spread(3, 515), spread(515, 90)
    want = ops.mm(x, w)
    inside, leave = threading.Barrier(2), threading.Event()
    seen: list[bool] = []

    def holder() -> None:
        with bio.enabled():
            inside.wait()
            leave.wait()
            seen.append(same(torch.mm(x, w), want))

    thread = threading.Thread(target=holder)
    thread.start()
    inside.wait()
    with bio.enabled():
        pass
    assert bio.is_enabled()
    assert same(torch.mm(x, w), want)
    leave.set()
    thread.join()
    assert seen == [True]
    assert not bio.is_enabled()


def test_switching_while_others_compute() -> None:
    """No crash and never a wrong number while the switch goes back and forth."""
    x, w = torch.randn(5, 64), torch.randn(64, 32)
    wide, exact = x.double(), (x.double() @ w.double())
    stop = threading.Event()
    failures: list[str] = []

    def worker() -> None:
        while not stop.is_set():
            try:
                close(torch.mm(x, w), exact)
                close(torch.addmm(torch.zeros(32), x, w), exact)
                if not torch.equal(torch.mm(wide, wide.t()), wide @ wide.t()):
                    failures.append("float64 changed")
            except Exception as error:
                failures.append(repr(error))

    threads = [threading.Thread(target=worker) for _ in range(3)]
    for t in threads:
        t.start()
    for _ in range(300):
        with bio.enabled():
            torch.mm(x, w)
    stop.set()
    for t in threads:
        t.join()
    assert failures == []
    assert not bio.is_enabled()


def test_parked_overrides_still_give_the_original() -> None:
    """With a second thread alive the overrides stay registered and step aside."""
    x, w = torch.randn(6, 300), torch.randn(300, 40)
    want = torch.mm(x, w), x.softmax(1), x.mean(1), functional.linear(x, w.t(), w[0])
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        with bio.enabled():
            pass
        assert bio.report().registered
        got, routed, original = during(
            lambda: (torch.mm(x, w), x.softmax(1), x.mean(1), functional.linear(x, w.t(), w[0]))
        )
        assert all(torch.equal(a, b) for a, b in zip(got, want, strict=True))
        assert routed == {}
        assert {"mm", "_softmax", "mean.dim", "addmm"} <= set(original)
        assert {reason for reasons in original.values() for reason in reasons} == {OFF}
    finally:
        done.set()
        thread.join()


def test_rows_of_torchs_own_functions_become_invariant() -> None:
    x, w, bias = spread(300, 515), spread(90, 515), spread(90)
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "linear": lambda a: functional.linear(a, w, bias),
        "matmul": lambda a: a @ w.t(),
        "softmax": lambda a: a.softmax(-1),
        "rms_norm": lambda a: functional.rms_norm(a, (515,)),
        "mean": lambda a: a.mean(-1),
        "vector": lambda a: a @ w[0],
    }
    with bio.enabled():
        for name, function in functions.items():
            whole = function(x)
            for m in (1, 2, 3, 7, 17, 64, 129):
                assert same(function(x[:m]), whole[:m]), (name, m)


def test_report_says_what_is_not_routed() -> None:
    report = bio.report()
    text = str(report)
    for name in ("inductor", "scaled_dot_product_attention", "F.rms_norm", "mean.dim"):
        assert name in text
    assert report.as_dict()["library"] == bio.library_path()
    assert not any(r.displaced for r in report.routes)


def test_report_sees_a_kernel_that_covers_ours() -> None:
    with bio.enabled():
        library = torch.library.Library("aten", "IMPL")
        try:
            library.impl("bmm", lambda a, b: a @ b, "CPU", allow_override=True)
            assert [r.name for r in bio.report().routes if r.displaced] == ["bmm"]
        finally:
            library._destroy()
        assert not any(r.displaced for r in bio.report().routes)


def test_counts_only_grow() -> None:
    before = counts()
    with bio.enabled():
        torch.mm(torch.ones(2, 2), torch.ones(2, 2))
    after = counts()
    assert after["mm"][0] == before["mm"][0] + 1
