"""Backward through the routed operators: torch's gradients, up to rounding."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from bits import same
from calls import during
from torch import Tensor, nn
from torch.nn import functional

import batch_invariant_ops as bio


class Model(nn.Module):
    """Linear layers, a norm, attention by hand, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(32, eps=1e-6)
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32, bias=False)
        self.head = nn.Linear(32, 11)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm(x)).chunk(3, -1)
        x = x + self.out(torch.softmax(q @ k.mT / 5.6, -1) @ v)
        logits: Tensor = self.head(x)
        return logits


def gradients(model: Model, x: Tensor, y: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    model.zero_grad()
    loss = functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    loss.backward()
    return loss.detach(), {
        n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None
    }


def test_gradients_are_torchs() -> None:
    model, x = Model(), torch.randn(4, 9, 32)
    y = torch.randint(0, 11, (4, 9))
    loss, want = gradients(model, x, y)
    with bio.enabled():
        (routed_loss, got), routed, _ = during(lambda: gradients(model, x, y))
    torch.testing.assert_close(routed_loss, loss)
    assert got.keys() == want.keys()
    for name, grad in want.items():
        torch.testing.assert_close(got[name], grad)
    assert {"mm", "addmm", "bmm", "_softmax", "_log_softmax", "mean.dim"} <= set(routed)


OPERATORS: list[tuple[str, Callable[..., Tensor], list[tuple[int, ...]]]] = [
    ("mm", torch.mm, [(4, 5), (5, 3)]),
    ("addmm", torch.addmm, [(3,), (4, 5), (5, 3)]),
    ("bmm", torch.bmm, [(2, 4, 5), (2, 5, 3)]),
    ("baddbmm", torch.baddbmm, [(3,), (2, 4, 5), (2, 5, 3)]),
    ("mv", torch.mv, [(4, 5), (5,)]),
    ("dot", torch.dot, [(5,), (5,)]),
    ("softmax", lambda x: x.softmax(-1).pow(2), [(4, 5)]),
    ("log_softmax", lambda x: x.log_softmax(0).pow(2), [(4, 5)]),
    ("sum", lambda x: x.sum(0).pow(2), [(4, 5)]),
    ("mean", lambda x: x.mean((0, 1)).pow(2), [(4, 5, 2)]),
    ("rms_norm", lambda x, w: functional.rms_norm(x, (5,), w), [(4, 5), (5,)]),
    ("linear", functional.linear, [(2, 4, 5), (3, 5), (3,)]),
]


@pytest.mark.parametrize(("name", "op", "shapes"), OPERATORS, ids=[n for n, _, _ in OPERATORS])
def test_each_gradient(name: str, op: Callable[..., Tensor], shapes: list[tuple[int, ...]]) -> None:
    inputs = [torch.randn(s, requires_grad=True) for s in shapes]
    weight = torch.randn_like(op(*inputs))
    want = torch.autograd.grad((op(*inputs) * weight).sum(), inputs)
    with bio.enabled():
        got = torch.autograd.grad((op(*inputs) * weight).sum(), inputs)
        again = torch.autograd.grad((op(*inputs) * weight).sum(), inputs)
    for a, b, c in zip(got, want, again, strict=True):
        torch.testing.assert_close(a, b)
        assert same(a, c), name


def test_forward_is_invariant_while_training() -> None:
    model, x = Model(), torch.randn(16, 9, 32)
    with bio.enabled():
        whole = model(x)
        assert whole.requires_grad
        for m in (1, 2, 5):
            assert same(model(x[:m]).detach(), whole[:m].detach())


def test_training_lowers_the_loss() -> None:
    model, x, y = Model(), torch.randn(8, 9, 32), torch.randint(0, 11, (8, 9))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    with bio.enabled():
        for _ in range(20):
            loss, _ = gradients(model, x, y)
            optimizer.step()
            losses.append(float(loss))
    assert losses[-1] < 0.5 * losses[0]


def test_autocast() -> None:
    x, w = torch.randn(5, 64), torch.randn(7, 64)
    with bio.enabled(), torch.autocast("cpu", dtype=torch.bfloat16):
        got, routed, _ = during(lambda: functional.linear(x, w))
        assert got.dtype == torch.bfloat16
        assert routed == {"mm": 1}
        assert same(functional.linear(x[:1], w), got[:1])
