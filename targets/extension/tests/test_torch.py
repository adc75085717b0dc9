"""torch's own view of the operators: opcheck, torch.compile, inference_mode, fake tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from bits import same
from torch import Tensor

import batch_invariant_ops  # noqa: F401

ops = torch.ops.batch_invariant_ops


def samples() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    x, w, b = torch.randn(6, 20), torch.randn(20, 9), torch.randn(9)
    h = x.to(torch.bfloat16)
    batch = torch.randn(3, 6, 20)
    return [
        ("mm", (x, w), {}),
        ("mm", (w.t(), x.t()), {}),
        ("mm", (h, w.to(h.dtype)), {}),
        ("bmm", (batch, w.expand(3, 20, 9)), {}),
        ("addmm", (b, x, w), {"beta": 0.5, "alpha": 2.0}),
        ("matmul", (batch, w), {}),
        ("matmul", (batch[:, None], torch.randn(2, 20, 4)), {}),
        ("matmul", (x[0], w), {}),
        ("matmul", (x, w[:, 0]), {}),
        ("matmul", (x[0], w[:, 0]), {}),
        ("linear", (batch, w.t(), b), {}),
        ("linear", (x[0], w.t()), {}),
        ("pack", (w,), {}),
        ("linear_packed", (batch, ops.pack(w.t()), 9, b), {}),
        ("sum", (batch,), {}),
        ("sum", (batch, [0, -1], True), {"dtype": torch.float32}),
        ("sum", (h, [0]), {"dtype": torch.float32}),
        ("mean", (batch, [1]), {}),
        ("mean", (batch, [], True), {}),
        ("sum.last", (batch.transpose(0, 2),), {}),
        ("mean.last", (h,), {}),
        ("softmax", (batch, 1), {}),
        ("softmax.last", (batch.transpose(0, 2),), {}),
        ("log_softmax.last", (h,), {}),
        ("softmax", (torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), -1), {}),
        ("softmax", (batch.transpose(0, 2), 0, torch.bfloat16), {}),
        ("log_softmax", (h, -1), {}),
        ("rms_norm", (batch, [20], w[:, 0].contiguous(), 1e-5), {}),
        ("rms_norm", (batch, [6, 20]), {}),
        ("add_rms_norm", (x, x + 1, [20], w[:, 0], 1e-5), {}),
        ("rms_norm.last", (batch, w[:, 0], 1e-5), {}),
        ("add_rms_norm.last", (h, h + 1, h[0], 1e-5), {}),
        ("_control_mm", (x, w), {}),
    ]


def overload(name: str) -> Any:
    """The operator "sum" or "sum.last"."""
    packet, _, which = name.partition(".")
    return getattr(getattr(ops, packet), which or "default")


@pytest.mark.parametrize(("name", "args", "kwargs"), samples())
def test_opcheck(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    result = torch.library.opcheck(overload(name), args, kwargs)
    assert set(result.values()) == {"SUCCESS"}


def leaves(value: Any) -> list[Tensor]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


@pytest.mark.parametrize(("name", "args", "kwargs"), samples())
def test_fake_has_the_real_layout(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    from torch._subclasses import FakeTensorMode

    op = overload(name)
    mode = FakeTensorMode()
    fake_args = [mode.from_tensor(a) if isinstance(a, Tensor) else a for a in args]
    with mode:
        fakes = leaves(op(*fake_args, **kwargs))
    for fake, real in zip(fakes, leaves(op(*args, **kwargs)), strict=True):
        assert (fake.shape, fake.dtype, fake.stride()) == (real.shape, real.dtype, real.stride())


def test_every_operator_is_sampled() -> None:
    names = {
        n.removeprefix("batch_invariant_ops::")
        for n in torch._C._dispatch_get_all_op_names()
        if n.startswith("batch_invariant_ops::") and "::_route" not in n
    }
    assert names == {name for name, _, _ in samples()}


def block(x: Tensor, packed: Tensor, gain: Tensor) -> Tensor:
    h = ops.rms_norm(x, [x.shape[-1]], gain, 1e-6)
    h = torch.relu(ops.linear_packed(h, packed, 32)) + 1
    out: Tensor = ops.softmax(h, -1) * ops.sum(h, [-1], True)
    return out


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compile(backend: str) -> None:
    packed, gain = ops.pack(torch.randn(32, 32)), torch.randn(32)
    x = torch.randn(64, 32)
    torch._dynamo.reset()
    compiled = torch.compile(block, backend=backend, fullgraph=True, dynamic=True)
    whole = compiled(x, packed, gain)
    assert torch.allclose(whole, block(x, packed, gain), rtol=1e-6)
    for m in (2, 3, 17):
        assert same(compiled(x[:m], packed, gain), whole[:m])


def test_inference_mode() -> None:
    x, w = torch.randn(5, 20), torch.randn(20, 9)
    want = ops.mm(x, w)
    with torch.inference_mode():
        got = ops.mm(x, w)
        assert got.is_inference()
        assert same(ops.softmax(got.clone(), 1), ops.softmax(want, 1))
    assert same(got.clone(), want)


def test_vmap_and_grad_of_a_custom_operator_do_not_lie() -> None:
    """No autograd is registered: a result must not look as if it had a gradient."""
    x = torch.randn(3, 4, requires_grad=True)
    y = ops.mm(x, torch.randn(4, 5))
    if y.requires_grad:
        with pytest.warns(UserWarning, match="autograd"):
            y.sum().backward()
        assert x.grad is None
