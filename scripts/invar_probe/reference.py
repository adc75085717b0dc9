"""What an operator should give, in float64, and how far off it may be.

The bounds are the standard forward error bounds for float32 arithmetic in any
order (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed.,
sections 2.2, 3.1 and 4.2): a sum of n terms is within gamma(n) * sum|terms|,
gamma(n) = n*u / (1 - n*u), u = 2**-24; rounding the result to its own dtype adds
half a unit in its last place. So a right kernel passes whatever its order is,
and one that drops a term, adds in 16 bits or reads a wrong element does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

_U = 2.0**-24

# Operations per output element beside the reduction itself: scale, bias, root,
# division, and the polynomials of exp and log, each good to a few units.
_EPILOGUE = 16


@dataclass
class Expected:
    """One output: its value in float64 and the largest error allowed per element."""

    value: torch.Tensor
    allowed: torch.Tensor


def gamma(n: float | torch.Tensor) -> torch.Tensor:
    """Relative error of n float32 roundings in a row."""
    steps = torch.as_tensor(n, dtype=torch.float64) * _U
    return steps / (1 - steps)


def rounded(value: torch.Tensor, error: torch.Tensor, dtype: torch.dtype) -> Expected:
    """Adds the rounding to dtype to an error made before it."""
    info = torch.finfo(dtype)
    half_ulp = info.eps / 2
    step = info.tiny * info.eps
    return Expected(value, error * (1 + half_ulp) + half_ulp * value.abs() + step)


def product(x: torch.Tensor, w: torch.Tensor, dtype: torch.dtype) -> Expected:
    """x @ w, also batched."""
    a, b = x.double(), w.double()
    return rounded(a @ b, gamma(x.shape[-1] + _EPILOGUE) * (a.abs() @ b.abs()), dtype)


def affine(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, alpha: float, beta: float
) -> Expected:
    """alpha * (x @ w) + beta * bias."""
    a, b, c = x.double(), w.double(), bias.double()
    size = abs(alpha) * (a.abs() @ b.abs()) + abs(beta) * c.abs()
    error = gamma(x.shape[-1] + _EPILOGUE) * size
    return rounded(alpha * (a @ b) + beta * c, error, x.dtype)


def total(x: torch.Tensor, dims: tuple[int, ...], mean: bool) -> Expected:
    """Sum or mean over dims."""
    a = x.double()
    count = 1
    for d in dims:
        count *= x.shape[d]
    by = count if mean else 1
    error = gamma(count + _EPILOGUE) * a.abs().sum(dims) / by
    return rounded(a.sum(dims) / by, error, x.dtype)


def softmax(x: torch.Tensor, dim: int, log: bool) -> Expected:
    """Softmax or its logarithm; the error of exp grows with its argument."""
    a = x.double()
    below = a.amax(dim, keepdim=True) - a
    reach = below.masked_fill(~below.isfinite(), 0).amax(dim, keepdim=True)
    chain = gamma(x.shape[dim] + _EPILOGUE + 2 * reach)
    if not log:
        value = torch.softmax(a, dim)
        return rounded(value, 2 * chain * value + torch.finfo(torch.float32).tiny, x.dtype)
    value = torch.log_softmax(a, dim)
    lse = (below + value).abs()
    return rounded(value, chain + 4 * _U * (below + lse + value.abs()), x.dtype)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> Expected:
    """x / sqrt(mean(x*x) + eps) * weight over the last dimension."""
    a = x.double()
    value = a / torch.sqrt((a * a).mean(-1, keepdim=True) + eps) * weight.double()
    return rounded(value, gamma(x.shape[-1] + _EPILOGUE) * value.abs(), x.dtype)


def add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, eps: float
) -> tuple[Expected, Expected]:
    """The norm of x + residual, and that sum; the norm may see it rounded or not."""
    exact = x.double() + residual.double()
    added = rounded(exact, gamma(1) * exact.abs(), x.dtype)
    norm = rms_norm(exact.to(x.dtype), weight, eps)
    norm.allowed += torch.finfo(x.dtype).eps * norm.value.abs()
    return norm, added


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, heads: int, scale: float
) -> Expected:
    """softmax(q @ k' * scale) @ v for each head, with keys shared by all rows."""
    rows, size = q.shape[0], q.shape[1] // heads
    one = q.double().view(rows, heads, size).transpose(0, 1)
    two, three = (t.double().view(-1, heads, size).transpose(0, 1) for t in (k, v))
    weight = torch.softmax(one @ two.transpose(1, 2) * scale, -1)
    reach = one.abs() @ two.abs().transpose(1, 2) * abs(scale)
    # An error of a score moves its weight by that factor, and so does one of the sum.
    relative = 2 * gamma(size + _EPILOGUE) * reach.amax(-1, keepdim=True)
    # Weights that are rounded to the dtype before the second product are within it too.
    relative = relative + gamma(3 * k.shape[0] + _EPILOGUE) + torch.finfo(q.dtype).eps
    error = relative * (weight @ three.abs())

    def flat(t: torch.Tensor) -> torch.Tensor:
        return t.transpose(0, 1).reshape(rows, heads * size)

    return rounded(flat(weight @ three), flat(error), q.dtype)


# Stands for every ratio that is larger, infinite or not a number.
MOST = 1e30


@dataclass
class Deviation:
    """The worst element of one output against what was expected."""

    ratio: float
    row: int
    element: int
    got: str  # as Python prints it: JSON has no NaN and no infinity
    want: str
    allowed: str
    nonfinite: int


def deviation(got: torch.Tensor, expected: Expected) -> Deviation:
    """Compares one output; a ratio above 1 or a nonfinite mismatch is wrong.

    NaN must be NaN and an infinity the same infinity. A finite float64 value that
    is too large for the dtype may come out as the infinity of its sign.
    """
    value, want = got.double(), expected.value
    limit = torch.finfo(got.dtype).max
    over = want.abs() > limit * (1 - torch.finfo(got.dtype).eps)
    want_class = torch.where(over, want.sign() * float("inf"), want)
    special = ~want.isfinite() | ~value.isfinite()
    agree = (value.isnan() & want.isnan()) | (value == want_class)
    bad = special & ~agree
    error = (value - want).abs() / expected.allowed
    error = torch.where(special, torch.zeros_like(error), error)
    at = int(error.argmax()) if error.numel() else 0
    if bool(bad.any()):
        at = int(torch.nonzero(bad.flatten())[0])
    width = max(1, value.numel() // max(1, value.shape[0]))
    flat = (value.flatten(), want.flatten(), expected.allowed.expand_as(want).flatten())
    picked = [f"{float(f[at]):.9g}" if f.numel() else "" for f in flat]
    worst = float(error.max()) if error.numel() else 0.0
    return Deviation(
        ratio=worst if worst <= MOST else MOST,  # also for NaN
        row=at // width,
        element=at % width,
        got=picked[0],
        want=picked[1],
        allowed=picked[2],
        nonfinite=int(bad.sum()),
    )
