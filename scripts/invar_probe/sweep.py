"""Runs one case through the contexts of a schedule and keeps the ledger."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import torch

from . import inputs
from .bits import Context, Ledger, count_distinct, rows_as_bits
from .cases import Case, Tensors
from .schedule import Setting, Sweep

# How far each further order is rotated after it was turned round; tried until
# one changes a bit.
ORDERS = (0, 1, 37, 113)


@dataclass
class Run:
    """One case, its ledger and what was really done."""

    case: Case
    ledger: Ledger
    seconds: float = 0.0
    order_sensitive: int = 0
    rows: set[int] = field(default_factory=set)
    covered: dict[str, set[str]] = field(default_factory=dict)
    routed_calls: int = 0
    routed_taken: int = 0

    @classmethod
    def of(cls, case: Case) -> Run:
        """A run of case that has done nothing yet."""
        return cls(case, Ledger(pool=case.pool.shape[0]))

    def sweep(self, sweep: Sweep, setting: Setting) -> None:
        """Makes all calls of sweep; the caller has set threads, level and routing."""
        began = time.perf_counter()
        # Largest first: the class that comes first is then that of the full batch.
        counts = sorted({min(r, self.ledger.pool) for r in sweep.rows}, reverse=True)
        for count in counts:
            for context, ids, x, fixed, routed in self._contexts(sweep, setting, count):
                self._call(context, ids, x, fixed, routed)
        self.seconds += time.perf_counter() - began

    def check_order(self) -> None:
        """Counts result elements that change when the reduction runs in another order.

        None means that these data cannot show a change of order: agreement of all
        contexts would prove nothing.
        """
        case = self.case
        usual = rows_as_bits(case.call(case.pool, case.fixed))
        for by in ORDERS:
            turned = rows_as_bits(case.reordered(by))
            self.order_sensitive += int((usual != turned).sum())
            if self.order_sensitive:
                return

    def result(self) -> dict[str, Any]:
        """Counts and examples as plain values."""
        ledger, spec = self.ledger, self.case.spec
        pairs, differ = ledger.pairs()
        rows, results = ledger.distinct()
        return {
            "operator": spec.operator,
            "family": spec.family,
            "label": spec.label(),
            "dtype": str(self.case.dtype).removeprefix("torch."),
            "calls": ledger.calls,
            "batches": sorted(self.rows),
            "covered": {k: sorted(v) for k, v in self.covered.items()},
            "rows_compared": ledger.rows_compared,
            "pairs": pairs,
            "differ": differ,
            "differing_batches": sorted(ledger.differing_rows_by_m),
            "differing_contexts": dict(ledger.differing_contexts.most_common(8)),
            "examples": [asdict(e) for e in ledger.examples],
            "rows": rows,
            "distinct_inputs": count_distinct(rows_as_bits((self.case.pool,)))[1],
            "distinct_results": results,
            "constant": ledger.constant(),
            "order_sensitive": self.order_sensitive,
            "routed": self._routed(),
            "seconds": round(self.seconds, 4),
        }

    def _routed(self) -> dict[str, Any] | None:
        spec = self.case.spec
        if not (spec.routed or spec.is_torch()):
            return None
        return {
            "function": spec.routed or spec.operator.partition(":")[2],
            "calls": self.routed_calls,
            "taken": self.routed_taken,
        }

    def _call(
        self, context: Context, ids: torch.Tensor, x: torch.Tensor, fixed: Tensors, routed: bool
    ) -> None:
        case = self.case
        call = case.routed if routed and case.routed else case.call
        self.routed_calls += routed or case.spec.is_torch()
        bits = rows_as_bits(call(x, fixed))
        at = torch.nonzero(ids >= 0).flatten()
        if len(at) < len(ids):
            ids, bits = ids[at], bits[at]
        self.ledger.add(ids, bits, context)
        self.rows.add(context.rows)
        for name in ("position", "neighbours", "layout", "route", "isa"):
            self.covered.setdefault(name, set()).add(getattr(context, name))
        self.covered.setdefault("threads", set()).add(str(context.threads))

    def _contexts(
        self, sweep: Sweep, setting: Setting, count: int
    ) -> Iterator[tuple[Context, torch.Tensor, torch.Tensor, Tensors, bool]]:
        case = self.case
        if sweep.routed and case.routed is None:
            return
        for order in sweep.orders:
            ids = inputs.arrange(count, order)
            for layout in sweep.layouts:
                x = case.pool[ids] if order != "in order" else case.pool[:count]
                if layout != "plain":
                    x = inputs.relayout(x, layout)
                # Weights as they are, then in this layout too.
                variants = [case.fixed]
                if layout != "plain" and case.fixed:
                    variants.append(tuple(inputs.relayout(f, layout) for f in case.fixed))
                for n, fixed in enumerate(variants):
                    for _ in range(sweep.repeats):
                        context = Context(
                            sweep.name, count, position=order,
                            layout=layout + (" weights" if n else ""),
                            threads=setting.threads, isa=setting.isa,
                            route="aten" if sweep.routed else "operator",
                        )  # fmt: skip
                        yield context, ids, x, fixed, sweep.routed
        for fill in sweep.fills:
            for shift in range(sweep.shifts):
                ids, x = self._needles(fill, sweep.positions, shift, count)
                context = Context(
                    sweep.name, count, position="moved", neighbours=fill,
                    threads=setting.threads, isa=setting.isa,
                )  # fmt: skip
                yield context, ids, x, case.fixed, False

    def _needles(
        self, fill: str, positions: list[str], shift: int, count: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """A batch of filler rows with rows of the pool at the positions.

        Each shift moves every needle to the next position. ids is -1 where a
        filler stands, whose result does not matter.
        """
        pool = self.case.pool
        x = inputs.fill((count, *pool.shape[1:]), pool.dtype, fill).clone()
        ids = torch.full((count,), -1)
        named = [inputs.place(p, count) for p in positions]
        places = sorted({p for p in named if p is not None})
        for n in range(len(places)):
            ids[places[(n + shift) % len(places)]] = n
        at = ids >= 0
        x[at] = pool[ids[at]]
        return ids, x
