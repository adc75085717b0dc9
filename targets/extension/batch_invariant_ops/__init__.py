"""Batch-invariant operators for PyTorch on the CPU and, in the cuda flavour, on NVIDIA GPUs.

Importing this package registers torch.ops.batch_invariant_ops.* and opens the
kernels that `invar build` installed. enable() routes aten's operators too.
"""

from __future__ import annotations

from contextlib import AbstractContextManager

from . import _cuda, _fake
from ._check import Check, quick_check
from ._loader import load as _load
from ._native import Native as _Native
from ._report import FOLLOWS, NOT_ROUTED, CudaReport, Report, RouteReport
from ._routing import Backend as _Backend
from ._routing import Router as _Router

__all__ = [
    "Check",
    "CudaReport",
    "Report",
    "RouteReport",
    "contract",
    "cuda_contract",
    "cuda_missing",
    "disable",
    "enable",
    "enabled",
    "is_enabled",
    "isa",
    "library_path",
    "prepare_cuda",
    "quick_check",
    "report",
    "select_isa",
    "stage1_version",
]

__version__ = "1.0.0"

_loaded = _load()
_native = _loaded.native
_loaded_cuda = _cuda.load(_loaded.extension.parent)
_fake.register()
_backends = [_Backend("CPU", _native)]
if isinstance(_loaded_cuda, _cuda.Cuda):
    _backends.append(_Backend("CUDA", _loaded_cuda.native))
_router = _Router(_backends)


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


def _routes(native: _Native, key: str) -> tuple[RouteReport, ...]:
    displaced = set(_router.displaced(key))
    return tuple(
        RouteReport(
            r.name,
            native.routed_calls(r.index),
            native.original_calls(r.index),
            r.name in displaced,
        )
        for r in native.routes()
    )


def report() -> Report:
    """What is routed, what is not and why, and how often each ran in this process."""
    cuda = None
    if isinstance(_loaded_cuda, _cuda.Cuda):
        cuda = CudaReport(
            contract=_loaded_cuda.contract,
            library=str(_loaded_cuda.stage1),
            arches=_loaded_cuda.arches,
            routes=_routes(_loaded_cuda.native, "CUDA"),
        )
    return Report(
        enabled=_router.is_enabled(),
        registered=_native.registered(),
        contract=_loaded.contract,
        isa=_native.isa(),
        library=str(_loaded.stage1),
        routes=_routes(_native, "CPU"),
        follows=dict(FOLLOWS),
        not_routed=dict(NOT_ROUTED),
        cuda=cuda,
        cuda_missing=cuda_missing(),
    )


def cuda_missing() -> str:
    """Why there are no CUDA operators in this process; empty when there are."""
    return _loaded_cuda.reason if isinstance(_loaded_cuda, _cuda.NoCuda) else ""


def cuda_contract() -> str | None:
    """The numerical contract of the CUDA operators; None when there are none."""
    return _loaded_cuda.contract if isinstance(_loaded_cuda, _cuda.Cuda) else None


def prepare_cuda() -> None:
    """Loads every CUDA kernel onto the current device, so that no later call has to.

    RuntimeError when there are no CUDA operators, no device, or no code for it.
    """
    if isinstance(_loaded_cuda, _cuda.NoCuda):
        raise RuntimeError(f"no CUDA operators: {_loaded_cuda.reason}")
    _loaded_cuda.native.prepare()


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
