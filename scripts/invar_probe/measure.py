"""Levels 6 and 7: runs the operators of a schedule and counts what they did."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from . import cases, gpu, npu, numerics, observe
from .cases import Operator, Spec
from .channel import Channel
from .package import Package
from .schedule import DTYPES, Schedule, Setting, Sweep, parse
from .sweep import Run

# Rows of the pool for level 6: enough for full and partial vectors and panels.
NUMERIC_ROWS = 37


class Resolver:
    """Finds operators by name: "mm" in the namespace, "torch:mm" in a module."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace

    def __call__(self, name: str) -> Operator:
        module, colon, function = name.partition(":")
        if not colon:
            found: Operator = getattr(getattr(torch.ops, self._namespace), name)
            return found
        at: Any = importlib.import_module(module)
        for part in function.split("."):
            at = getattr(at, part)
        operator: Operator = at
        return operator


def run(request: dict[str, Any], channel: Channel) -> dict[str, Any]:
    """Carries out a measurement; level 7 only where the request asks for it."""
    schedule = parse(request["schedule"])
    package: Package | npu.Device
    resolve: Callable[[str], Operator]
    if request.get("npu"):
        importlib.import_module(request["module"])
        package, resolve = npu.Device(), npu.Resolver(request["namespace"])
    elif request.get("device"):
        package, found = (
            gpu.Device(request["module"], request["device"]),
            Resolver(request["namespace"]),
        )
        device = request["device"]

        def resolve(name: str) -> Operator:
            return gpu.there_and_back(found(name), device)
    else:
        package, resolve = Package(request["module"]), Resolver(request["namespace"])
    began = time.perf_counter()
    out: dict[str, Any] = {"numbers": _numbers(schedule, resolve, channel)}
    out["numbers_seconds"] = round(time.perf_counter() - began, 3)
    if request["invariance"]:
        began = time.perf_counter()
        out["invariance"] = _Invariance(schedule, package, resolve, channel).run()
        out["invariance"]["seconds"] = round(time.perf_counter() - began, 3)
    return out


def _numbers(
    schedule: Schedule, resolve: Callable[[str], Operator], channel: Channel
) -> list[dict[str, Any]]:
    out = []
    for n, (spec, name) in enumerate(_pairs(schedule)):
        channel.progress(n, len(schedule.operators) * len(schedule.dtypes), "numbers")
        entry: dict[str, Any]
        try:
            case = cases.make(
                spec, DTYPES[name], NUMERIC_ROWS, schedule.seed, resolve, cancelling=False
            )
            entry = numerics.measure(case)
        except (RuntimeError, AttributeError, TypeError, ValueError) as e:
            entry = _failed(spec, name, e)
        out.append(entry)
    return out


class _Invariance:
    """Level 7 of one schedule."""

    def __init__(
        self,
        schedule: Schedule,
        package: Package | npu.Device,
        resolve: Callable[[str], Operator],
        channel: Channel,
    ) -> None:
        self._schedule, self._package = schedule, package
        self._resolve, self._channel = resolve, channel
        self._failures: list[dict[str, Any]] = []
        self._left_out: list[str] = []
        self._done = 0

    def run(self) -> dict[str, Any]:
        schedule = self._schedule
        settings = self._settings()
        runs = [r for spec, name in _pairs(schedule) for r in self._start(spec, name)]
        with self._package.routing():
            routed = [
                r for name in schedule.dtypes for s in schedule.routed for r in self._start(s, name)
            ]
        control: list[Run] = []
        if schedule.control is not None:
            for name in schedule.dtypes:
                control += self._start(schedule.control, name)
        before, was = torch.get_num_threads(), self._package.isa()
        total = len(settings) * (len(runs) + len(control))
        try:
            for setting in settings:
                self._under(setting, runs + control, total)
                self._routed(setting, routed)
        finally:
            torch.set_num_threads(before)
            self._package.select_isa(was)
        out: dict[str, Any] = {
            "operators": [r.result() for r in runs + routed],
            "control": [r.result() for r in control],
            "failures": self._failures,
            "settings": [{"isa": s.isa, "threads": s.threads} for s in settings],
            "left_out": self._left_out,
        }
        if schedule.observe is not None:
            out["observed"] = observe.torch_batches(schedule, self._package, self._resolve)
        return out

    def _start(self, spec: Spec, name: str) -> Iterator[Run]:
        schedule = self._schedule
        try:
            case = cases.make(
                spec, DTYPES[name], schedule.most_rows(), schedule.seed, self._resolve
            )
            if spec.routed:
                case.routed = cases.through(case, "torch:" + spec.routed, self._resolve)
            started = Run.of(case)
            started.check_order()
        except (RuntimeError, AttributeError, TypeError, ValueError) as e:
            self._failures.append(_failed(spec, name, e))
            return
        yield started

    def _under(self, setting: Setting, runs: list[Run], total: int) -> None:
        torch.set_num_threads(setting.threads)
        if torch.get_num_threads() != setting.threads:
            # A torch without OpenMP: what was asked for was not swept.
            self._left_out.append(f"{setting.threads} threads: torch does not take them")
            return
        self._package.select_isa(setting.isa)
        for run in runs:
            self._done += 1
            self._channel.progress(self._done, total, run.case.spec.label())
            for name in setting.sweeps:
                sweep = self._schedule.sweeps[name]
                if not sweep.routed:
                    run.sweep(sweep, setting)
                    continue
                self._counted(run, sweep, setting)

    def _routed(self, setting: Setting, runs: list[Run]) -> None:
        """Sweeps torch's functions with every call routed."""
        for run in runs:
            for name in setting.sweeps:
                sweep = self._schedule.sweeps[name]
                if not sweep.routed:
                    self._counted(run, sweep, setting)

    def _counted(self, run: Run, sweep: Sweep, setting: Setting) -> None:
        before = sum(self._package.counts().values())
        with self._package.routing():
            run.sweep(sweep, setting)
        run.routed_taken += sum(self._package.counts().values()) - before

    def _settings(self) -> list[Setting]:
        """Settings with names like "best" replaced by what this machine has."""
        levels = self._package.levels()
        usable = [n for n, available in levels if available]
        self._left_out += [f"{n}: not available on this machine" for n, ok in levels if not ok]
        cores = torch.get_num_threads()
        done: set[tuple[str, int, str]] = set()
        out: list[Setting] = []
        for s in self._schedule.settings:
            names = {
                "best": usable[-1:],
                "fast": usable[1:-1],
                "slow": usable[:1] if len(usable) > 1 else [],
            }.get(s.isa, [s.isa] if s.isa in usable else [])
            threads = s.threads or cores  # 0: all that torch would use here
            for name in names:
                sweeps = [w for w in s.sweeps if (name, threads, w) not in done]
                done.update((name, threads, w) for w in sweeps)
                if sweeps:
                    out.append(Setting(name, threads, sweeps))
        return out


def _pairs(schedule: Schedule) -> Iterator[tuple[Spec, str]]:
    for name in schedule.dtypes:
        for spec in schedule.operators:
            yield spec, name


def _failed(spec: Spec, dtype: str, e: Exception) -> dict[str, Any]:
    return {
        "operator": spec.operator,
        "family": spec.family,
        "label": spec.label(),
        "dtype": dtype,
        "error": f"{type(e).__name__}: {e}",
    }
