"""Input data: rows that can show a change of order, fillers, memory layouts."""

from __future__ import annotations

import functools
import math

import torch

# How far apart, as powers of two, the elements of a row lie, and how large the
# cancelling pairs are. Bounded by what float16 can hold (65504) after a sum of
# products; the other two could take far more, but need no more.
_SPREAD = {torch.float32: 12, torch.bfloat16: 8, torch.float16: 2}
_CANCEL = {torch.float32: 2.0**20, torch.bfloat16: 2.0**20, torch.float16: 2.0**10}


def generator(seed: int) -> torch.Generator:
    """A generator of its own, so that no input depends on what ran before."""
    return torch.Generator().manual_seed(seed)


def spread(shape: tuple[int, ...], dtype: torch.dtype, gen: torch.Generator) -> torch.Tensor:
    """Normal values of both signs times a random power of two."""
    reach = _SPREAD[dtype]
    exponent = torch.randint(-reach, reach + 1, shape, generator=gen).to(torch.float32)
    return (torch.randn(shape, generator=gen) * torch.exp2(exponent)).to(dtype)


# Elements of a row that are chosen last, to bring its sum to a wanted value.
_TUNERS = 6


def logits(shape: tuple[int, int], dtype: torch.dtype, gen: torch.Generator) -> torch.Tensor:
    """Rows for softmax of three kinds: flat, with one high peak, and tuned.

    In a peaked row the logarithm of the sum is near zero, where even 16 bits
    resolve the last bit of a float32 sum. In a tuned row the largest result lies on
    the border between two values of dtype, so the last bit of the sum decides it.
    """
    out = torch.randn(shape, generator=gen)
    at = torch.randint(0, shape[1], (shape[0],), generator=gen)
    peaked = torch.arange(1, shape[0], 3)
    out[peaked, at[peaked]] = math.log(shape[1]) + 9.0
    out = out.to(dtype)
    tuned = torch.arange(2, shape[0], 3)
    out[tuned] = _tuned_logits(out[tuned])
    return out


def _tuned_logits(rows: torch.Tensor) -> torch.Tensor:
    top = 4.0
    rows = rows.clamp(max=top)
    rows[:, 0] = top
    rows[:, 1 : 1 + _TUNERS] = -60.0
    total = torch.exp(rows.double() - top).sum(1)
    # The next border below 1/total; a result half way between two values.
    largest = 1 / total
    step = torch.exp2(torch.floor(torch.log2(largest))) * torch.finfo(rows.dtype).eps
    border = (torch.floor(largest / step - 0.5) + 0.5) * step
    rest = 1 / border - total
    for n in range(1, 1 + _TUNERS):
        value = _down((torch.log(rest.clamp(min=1e-30)) + top).clamp(max=top), rows.dtype)
        rows[:, n] = value
        rest = rest - torch.exp(value.double() - top)
    return rows


def hidden(
    shape: tuple[int, int], dtype: torch.dtype, gen: torch.Generator, eps: float
) -> torch.Tensor:
    """Rows for a norm: every second one with a mean square of 1 - eps.

    Its root is then 1 but for the rounding of the sum, and products of two 16-bit
    values often lie exactly on a border: the last bit of the sum decides them.
    """
    out = torch.randn(shape, generator=gen).to(dtype)
    tuned = torch.arange(1, shape[0], 2)
    rows = (out[tuned].double() * 0.9).to(dtype)
    rows[:, :_TUNERS] = 0
    rest = shape[1] * (1 - eps) - rows.double().square().sum(1)
    for n in range(_TUNERS):
        value = _down(rest.clamp(min=0).sqrt(), dtype)
        rows[:, n] = value
        rest = rest - value.double().square()
    out[tuned] = rows
    return out


def _down(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Rounds towards minus infinity."""
    near = value.to(dtype)
    low = (value - value.abs() * torch.finfo(dtype).eps).to(dtype)
    return torch.where(near.double() > value, low, near)


def pairs(size: int, gen: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Two disjoint sets of positions in a reduction of size elements."""
    order = torch.randperm(size, generator=gen)
    count = max(1, size // 16)
    return order[:count], order[count : 2 * count]


def cancel(rows: torch.Tensor, where: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Puts large values at one set of positions and their negatives at the other.

    They vanish from the exact sum, but not from the rounding on the way to it.
    So a change of order shows even after the result is rounded to 16 bits, where
    rounding hides it in ordinary data.
    """
    one, other = where
    big = rows[..., one] * _CANCEL[rows.dtype]
    # Without the clamp a 16-bit product would be infinite, and inf - inf is NaN
    # whatever the order.
    big = big.clamp(-4096, 4096) if rows.dtype == torch.float16 else big
    out = rows.clone()
    out[..., one] = big
    out[..., other] = -big
    return out


LAYOUTS = ("plain", "offset", "padded", "spaced", "transposed")


def relayout(x: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values with another address, stride or order in memory."""
    if layout == "plain" or x.dim() == 0:
        return x.clone(memory_format=torch.contiguous_format)
    if layout == "offset":
        # One element past an aligned start: no vector load is aligned.
        out = x.new_empty(x.numel() + 1)[1:].view(x.shape)
    elif layout == "padded":
        out = x.new_empty((*x.shape[:-1], x.shape[-1] + 3))[..., : x.shape[-1]]
    elif layout == "spaced":
        out = x.new_empty((*x.shape[:-1], 2 * x.shape[-1]))[..., ::2]
    elif layout == "transposed":
        out = x.transpose(0, -1).contiguous().transpose(0, -1)
    else:
        raise ValueError(f"unknown layout {layout!r}; want one of {', '.join(LAYOUTS)}")
    return out.copy_(x)


FILLS = ("zeros", "huge", "tiny", "inf", "nan", "mixed")


@functools.cache  # the same for every operator of one shape
def fill(shape: tuple[int, ...], dtype: torch.dtype, kind: str) -> torch.Tensor:
    """Contents for the rows beside the one that is looked at; not to be written to."""
    gen = generator(shape[0])
    info = torch.finfo(dtype)
    sign = torch.where(torch.rand(shape, generator=gen) < 0.5, -1.0, 1.0)
    if kind == "zeros":
        values = torch.zeros(shape)
    elif kind == "huge":
        values = sign * info.max
    elif kind == "tiny":
        steps = torch.randint(1, 64, shape, generator=gen).to(torch.float64)
        return (sign * steps * _smallest(dtype)).to(dtype)
    elif kind == "inf":
        values = sign * float("inf")
    elif kind == "nan":
        values = torch.full(shape, float("nan"))
    elif kind == "mixed":
        which = torch.randint(0, 5, shape, generator=gen)
        values = torch.randn(shape, generator=gen)
        for n, special in enumerate((info.max, float("inf"), float("nan"), 0.0)):
            values = torch.where(which == n, sign * special, values)
    else:
        raise ValueError(f"unknown filler {kind!r}; want one of {', '.join(FILLS)}")
    return values.to(dtype)


def _smallest(dtype: torch.dtype) -> float:
    """The smallest positive subnormal; torch.finfo knows only the smallest normal."""
    info = torch.finfo(dtype)
    return float(info.tiny) * float(info.eps)


def arrange(count: int, order: str) -> torch.Tensor:
    """Row numbers 0 to count-1 in another order."""
    ids = torch.arange(count)
    if order == "in order":
        return ids
    if order == "reversed":
        return ids.flip(0)
    if order == "rolled":
        # 5 is prime to every vector width and tile.
        return ids.roll(5)
    raise ValueError(f"unknown order {order!r}; want in order, reversed or rolled")


def place(position: str, count: int) -> int | None:
    """The row that a position names in a batch of count rows; None when it has none."""
    if position == "middle":
        return count // 2
    if position == "last":
        return count - 1
    at = int(position)
    return at if at < count else None
