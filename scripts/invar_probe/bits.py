"""Results as bits, and the ledger that finds out which of them disagree."""

from __future__ import annotations

import ctypes
from collections import Counter
from dataclasses import dataclass, field

import torch

_INTEGER = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

# How many differences are described one by one; the counts are always complete.
EXAMPLES = 8


def rows_as_bits(outputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """One integer row per input row, over all outputs of one call.

    A float comparison would call -0 and +0 equal and two equal NaN different;
    integers compare what is really stored.
    """
    flat = []
    for out in outputs:
        rows = out.contiguous().view(_INTEGER[out.element_size()])
        flat.append(rows.reshape(out.shape[0], -1))
    if len({f.dtype for f in flat}) > 1:
        flat = [f.to(torch.int64) for f in flat]
    return torch.cat(flat, dim=1) if len(flat) > 1 else flat[0]


def raw(t: torch.Tensor) -> bytes:
    """The bytes of a tensor. Not through numpy, which an environment may lack."""
    t = t.contiguous()
    return ctypes.string_at(t.data_ptr(), t.numel() * t.element_size())


def count_distinct(rows: torch.Tensor) -> tuple[int, int]:
    """Rows, and how many different ones are among them."""
    width = rows[0].numel() * rows.element_size() if len(rows) else 0
    data = raw(rows)
    return len(rows), len({data[i * width : (i + 1) * width] for i in range(len(rows))})


@dataclass
class Context:
    """One call: everything that must not matter for the bits of a row."""

    sweep: str
    rows: int
    position: str = "in order"
    neighbours: str = "other rows"
    layout: str = "plain"
    threads: int = 0
    isa: str = ""
    route: str = "operator"

    def label(self) -> str:
        """The context as a short text for a person."""
        parts = [f"m={self.rows}"]
        for text, usual in (
            (self.position, "in order"),
            (self.neighbours, "other rows"),
            (self.layout, "plain"),
            (self.route, "operator"),
        ):
            if text != usual:
                parts.append(text)
        if self.threads:
            parts.append(f"{self.threads} thread" + ("s" if self.threads > 1 else ""))
        if self.isa:
            parts.append(self.isa)
        return ", ".join(parts)


@dataclass
class Example:
    """Two contexts in which one row has different bits."""

    row: int
    first: str
    second: str
    element: int
    first_bits: str
    second_bits: str


@dataclass
class Ledger:
    """Compares all contexts of each row pairwise, by classes of equal bits.

    Equality of bits is transitive, so the classes of a row tell for every pair
    of its contexts whether the two agree; no context is a reference. The class
    of the first bits seen is kept as a tensor, which makes the usual case (all
    agree) one vector comparison; others are kept byte by byte.
    """

    pool: int
    calls: int = 0
    rows_compared: int = 0
    differing_rows_by_m: Counter[int] = field(default_factory=Counter)
    differing_contexts: Counter[str] = field(default_factory=Counter)
    examples: list[Example] = field(default_factory=list)
    _first: torch.Tensor | None = None
    _first_label: list[str] = field(default_factory=list)
    _seen: torch.Tensor | None = None
    _count: torch.Tensor | None = None
    _others: dict[int, Counter[bytes]] = field(default_factory=dict)

    def add(self, ids: torch.Tensor, bits: torch.Tensor, context: Context) -> int:
        """Notes the bits of rows ids in context; returns how many rows left the first class."""
        first, seen, count = self._tables(bits)
        self.calls += 1
        self.rows_compared += len(ids)
        fresh = ~seen[ids]
        if bool(fresh.any()):
            first[ids[fresh]] = bits[fresh]
            seen[ids] = True
            label = context.label()
            for row in ids[fresh].tolist():
                self._first_label[row] = label
        # The pool in order is a view, not a gather; that is most of the calls.
        known = first[: len(ids)] if context.position == "in order" else first[ids]
        if torch.equal(known, bits):
            count[ids] += 1
            return 0
        same = (known == bits).all(dim=1)
        count[ids] += same.to(count.dtype)
        left = int((~same).sum())
        self.differing_rows_by_m[context.rows] += left
        self.differing_contexts[context.label()] += left
        for i in torch.nonzero(~same).flatten().tolist():
            row = int(ids[i])
            self._others.setdefault(row, Counter())[raw(bits[i])] += 1
            if len(self.examples) < EXAMPLES:
                self.examples.append(self._example(row, bits[i], context))
        return left

    def pairs(self) -> tuple[int, int]:
        """All pairs of contexts of one row, and how many of them differ."""
        if self._count is None:
            return 0, 0
        total = equal = 0
        for row, n in enumerate(self._count.tolist()):
            classes = [n, *self._others.get(row, Counter()).values()]
            contexts = sum(classes)
            total += contexts * (contexts - 1) // 2
            equal += sum(c * (c - 1) // 2 for c in classes)
        return total, total - equal

    def distinct(self) -> tuple[int, int]:
        """Rows seen, and how many different results they have."""
        if self._first is None or self._seen is None:
            return 0, 0
        return count_distinct(self._first[self._seen])

    def constant(self) -> bool:
        """True when all elements of all rows hold the same bits."""
        if self._first is None or self._seen is None:
            return True
        rows = self._first[self._seen]
        if rows.numel() == 0:
            return True
        # One row mostly tells; all of them only where it does not.
        return all(bool((r == rows[0, 0]).all()) for r in (rows[0], rows))

    def _tables(self, bits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        if self._first is None or self._seen is None or self._count is None:
            self._first = torch.zeros((self.pool, bits.shape[1]), dtype=bits.dtype)
            self._seen = torch.zeros(self.pool, dtype=torch.bool)
            self._count = torch.zeros(self.pool, dtype=torch.int64)
            self._first_label = [""] * self.pool
        return self._first, self._seen, self._count

    def _example(self, row: int, bits: torch.Tensor, context: Context) -> Example:
        assert self._first is not None
        first = self._first[row]
        at = int(torch.nonzero(first != bits).flatten()[0])
        width = first.element_size() * 2
        mask = (1 << (4 * width)) - 1
        return Example(
            row=row,
            first=self._first_label[row],
            second=context.label(),
            element=at,
            first_bits=f"{int(first[at]) & mask:0{width}x}",
            second_bits=f"{int(bits[at]) & mask:0{width}x}",
        )
