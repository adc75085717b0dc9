"""verify ops: sweeps any operator, with a control of its own and a reproducer.

The operator may be one of a package, of torch, or a function of a file. What is
found is kept apart by axis: the numbers of rows alone, and threads and
instruction sets beside them.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from . import cases, reproduce
from .bits import Context, Ledger
from .cases import Case, Spec, Tensors
from .channel import Channel
from .locate import Locator
from .package import Package
from .schedule import DTYPES, Schedule, Setting, Sweep, parse
from .sweep import Run

# Row counts of the control beside the largest: several remainders that it turns on.
CONTROL_ROWS = [1, 2, 3, 5, 17, 33, 129]
TURNS = 13
STEP = 37  # prime to lanes and tiles, so that each turn meets other partners


@dataclass
class AxisLedger(Ledger):
    """A ledger that also counts the rows that left the first class by setting and m."""

    by_axis: dict[tuple[str, int, str], Counter[int]] = field(default_factory=dict)

    def add(self, ids: torch.Tensor, bits: torch.Tensor, context: Context) -> int:
        """As Ledger.add."""
        left = super().add(ids, bits, context)
        if left:
            key = (context.sweep, context.threads, context.isa)
            self.by_axis.setdefault(key, Counter())[context.rows] += left
        return left


def run(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Carries out one verification of operators."""
    schedule = parse(request["schedule"])
    package = Package(request["module"]) if request["module"] else None
    began = time.perf_counter()
    out = _Verification(request, schedule, package, channel).run()
    out["seconds"] = round(time.perf_counter() - began, 3)
    return out


class _Verification:
    def __init__(
        self,
        request: dict[str, Any],
        schedule: Schedule,
        package: Package | None,
        channel: Channel,
    ) -> None:
        self._schedule, self._package, self._channel = schedule, package, channel
        self._locate = Locator(request["namespace"])
        self._seeds = [int(s) for s in request["seeds"]]
        self._reproduce = bool(request["reproduce"])
        self._left_out: list[str] = []

    def run(self) -> dict[str, Any]:
        schedule = self._schedule
        settings = self._settings()
        work = [
            (spec, name, seed)
            for spec in schedule.operators
            for name in schedule.dtypes
            for seed in self._seeds
        ]
        results = []
        before = torch.get_num_threads()
        was = self._package.isa() if self._package else None
        try:
            for n, (spec, name, seed) in enumerate(work):
                self._channel.progress(n, len(work), f"{spec.label()} {name}")
                results.append(self._one(spec, name, seed, settings))
        finally:
            torch.set_num_threads(before)
            if self._package:
                self._package.select_isa(was)
        return {
            "cases": results,
            "settings": [{"isa": s.isa, "threads": s.threads} for s in settings],
            "left_out": self._left_out,
            "torch": str(torch.__version__),
            "locations": self._locate.places,
        }

    def _one(self, spec: Spec, name: str, seed: int, settings: list[Setting]) -> dict[str, Any]:
        try:
            case = cases.make(spec, DTYPES[name], self._schedule.most_rows(), seed, self._locate)
            swept = self._sweep(case, settings)
            control = self._control(case, settings)
        except Exception as e:  # whatever the operator raises is the finding
            return {
                "operator": spec.operator, "family": spec.family, "label": spec.label(),
                "dtype": name, "seed": seed, "error": f"{type(e).__name__}: {e}",
            }  # fmt: skip
        out = swept.result()
        ledger = swept.ledger
        assert isinstance(ledger, AxisLedger)
        out["seed"] = seed
        out["axes"] = [
            {"sweep": k[0], "threads": k[1], "isa": k[2], "batches": sorted(v)}
            for k, v in ledger.by_axis.items()
        ]
        out["control"] = control
        if out["differ"] and self._reproduce:
            out["reproducer"] = reproduce.make(case, out, seed, self._locate)
        return out

    def _sweep(self, case: Case, settings: list[Setting]) -> Run:
        swept = Run(case, AxisLedger(pool=case.pool.shape[0]))
        swept.check_order()
        for setting in settings:
            self._enter(setting)
            for name in setting.sweeps:
                sweep = self._schedule.sweeps[name]
                if not sweep.routed:
                    with self._routing(case.spec):
                        swept.sweep(sweep, setting)
        return swept

    def _control(self, case: Case, settings: list[Setting]) -> dict[str, int]:
        """The same operator and data, in an order that follows the number of rows.

        A sweep that does not see this would not see a kernel that does the same.
        """
        self._enter(settings[0])
        swept = Run(_dependent(case), AxisLedger(pool=case.pool.shape[0]))
        # Rounding to 16 bits hides most of what changes, so many rows are looked at.
        most = case.pool.shape[0]
        rows = sorted({*(r for r in CONTROL_ROWS if r <= most), *range(max(1, most - 7), most + 1)})
        swept.sweep(Sweep("control", rows), settings[0])
        pairs, differ = swept.ledger.pairs()
        return {"pairs": pairs, "differ": differ}

    def _routing(self, spec: Spec) -> AbstractContextManager[None]:
        # torch's own functions are judged as they are.
        return self._package.unrouted() if self._package and spec.is_torch() else nullcontext()

    def _enter(self, setting: Setting) -> None:
        torch.set_num_threads(setting.threads)
        if self._package and setting.isa:
            self._package.select_isa(setting.isa)

    def _settings(self) -> list[Setting]:
        """Settings with names like "best" replaced by what there is here."""
        usable = [""]
        if self._package:
            usable = [n for n, available in self._package.stage1.levels() if available]
        else:
            self._left_out.append("instruction sets: only invar's operators can change them")
        cores = torch.get_num_threads()
        done: set[tuple[str, int, str]] = set()
        out: list[Setting] = []
        for s in self._schedule.settings:
            names = {"best": usable[-1:], "fast": usable[1:-1], "slow": usable[:1]}.get(s.isa, [])
            if s.isa == "slow" and len(usable) < 2:
                names = []
            for isa in names:
                threads = s.threads or cores
                torch.set_num_threads(threads)
                if torch.get_num_threads() != threads:
                    self._left_out.append(f"{threads} threads: torch does not take them")
                    continue
                sweeps = [w for w in s.sweeps if (isa, threads, w) not in done]
                done.update((isa, threads, w) for w in sweeps)
                if sweeps:
                    out.append(Setting(isa, threads, sweeps))
        torch.set_num_threads(cores)
        return out


def _dependent(case: Case) -> Case:
    """Case with the order of its reduction turned by the number of rows."""

    def call(x: torch.Tensor, fixed: Tensors) -> Tensors:
        return replace(case, pool=x, fixed=fixed).reordered(x.shape[0] % TURNS * STEP)

    return replace(case, call=call, routed=None)
