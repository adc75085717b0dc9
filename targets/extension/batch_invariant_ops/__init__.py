"""Batch-invariant operators for PyTorch on the CPU.

Importing this package registers torch.ops.batch_invariant_ops.* and opens the
kernels that `invar build cpu` installed. enable() routes aten's operators too.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from . import _fake
from ._check import Check, quick_check
from ._loader import load as _load
from ._report import FOLLOWS, NOT_ROUTED, Report, RouteReport
from ._routing import Router as _Router

__all__ = [
    "Check",
    "Report",
    "RouteReport",
    "contract",
    "disable",
    "enable",
    "enabled",
    "is_enabled",
    "isa",
    "library_path",
    "quick_check",
    "report",
    "select_isa",
    "stage1_version",
]

__version__ = "1.0.0"

_loaded = _load()
_native = _loaded.native
_fake.register()
_router = _Router(_native)


def enable() -> None:
    """Routes aten operators to the invariant kernels, in every thread.

    Calls nest: routing ends with as many disable() calls.
    """
    _router.enable()


def disable() -> None:
    """Takes one enable() back. Without one it does nothing."""
    _router.disable()


def is_enabled() -> bool:
    """Whether aten operators are routed now."""
    return _router.is_enabled()


def enabled() -> AbstractContextManager[None]:
    """A context in which aten operators are routed."""
    return _router.enabled()


def report() -> Report:
    """What is routed, what is not and why, and how often each ran in this process."""
    displaced = set(_router.displaced())
    return Report(
        enabled=_router.is_enabled(),
        registered=_native.registered(),
        contract=_loaded.contract,
        isa=_native.isa(),
        library=str(_loaded.stage1),
        routes=tuple(
            RouteReport(
                r.name,
                _native.routed_calls(r.index),
                _native.original_calls(r.index),
                r.name in displaced,
            )
            for r in _native.routes()
        ),
        follows=dict(FOLLOWS),
        not_routed=dict(NOT_ROUTED),
    )


def contract() -> str:
    """Name and version of the numerical contract that the results keep."""
    return _loaded.contract


def library_path() -> str:
    """The stage 1 library in use."""
    return str(_loaded.stage1)


def stage1_version() -> str:
    """The version of the run package that stage 1 came with."""
    return _loaded.stage1_version


def isa() -> str | None:
    """The instruction set level in use; None when INVAR_CPU_ISA names a missing one."""
    return _native.isa()


def select_isa(name: str | None) -> None:
    """Makes a level current for the whole process; None goes back to the default.

    RuntimeError when this machine does not have it.
    """
    _native.select_isa(name)
