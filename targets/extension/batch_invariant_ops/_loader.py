"""Finds the installed stage 1, checks it, and loads lib_ops.so beside this file."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

import torch

from ._native import Native

NAMESPACE = "batch_invariant_ops"
STAGE1_VARIABLE = "INVAR_CPU_LIBRARY"
_EXTENSION = "lib_ops.so"
# Beside the generation's site folder that holds this package; the run package of
# cuda has the kernels of the CPU, too, and a generation holds one run package.
_STAGE1 = tuple(Path("ops", name, "lib", "libinvar_cpu.so") for name in ("cpu", "cuda"))


@dataclass(frozen=True)
class Loaded:
    """What the import found."""

    native: Native
    extension: Path
    stage1: Path
    contract: str
    stage1_version: str


def stage1_path(package: Path) -> tuple[Path, str]:
    """Where stage 1 is looked for, and why there.

    The package's own path is resolved first: it is reached through a link that a
    later installation moves, and one process must not mix two generations.
    """
    forced = os.environ.get(STAGE1_VARIABLE)
    if forced:
        return Path(forced), f"named by {STAGE1_VARIABLE}"
    found = [package.resolve().parents[1] / path for path in _STAGE1]
    place = next((path for path in found if path.exists()), found[0])
    return place, "beside the installed package"


def _stage1_identity(path: Path, origin: str) -> tuple[int, str, str]:
    """ABI, contract and version of a stage 1 library, read before torch gets it."""
    place = f"the stage 1 library {path} ({origin})"
    if not path.is_absolute():
        raise ImportError(
            f"{NAMESPACE}: {STAGE1_VARIABLE} must be an absolute path, got {os.fspath(path)!r}"
        )
    if not path.exists():
        raise ImportError(
            f"{NAMESPACE}: {place} does not exist. "
            f"Build and install it with `invar build cpu`, or set {STAGE1_VARIABLE}."
        )
    try:
        library = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        abi, contract, version = (
            getattr(library, f"invar_cpu_{name}") for name in ("abi_version", "contract", "version")
        )
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"{NAMESPACE}: {place} is not a usable stage 1 library: {error}. "
            "Build and install it again with `invar build cpu`."
        ) from error
    abi.restype = ctypes.c_int32
    contract.restype = version.restype = ctypes.c_char_p
    return int(abi()), contract().decode(), version().decode()


def _refuse_second_copy(extension: Path) -> None:
    """Two libraries that define the namespace would abort the process in torch."""
    names = torch._C._dispatch_get_all_op_names()
    if not any(name.startswith(f"{NAMESPACE}::") for name in names):
        return
    try:
        ctypes.CDLL(str(extension), mode=os.RTLD_NOW | os.RTLD_NOLOAD)
    except OSError:
        raise ImportError(
            f"{NAMESPACE}: another library has already defined torch.ops.{NAMESPACE} in this "
            f"process; {extension} is not loaded beside it. Keep one installation: "
            "`invar status` shows them."
        ) from None


def load() -> Loaded:
    """Loads stage 2 onto a checked stage 1, or raises ImportError."""
    package = Path(__file__).resolve().parent
    extension = package / _EXTENSION
    if not extension.exists():
        raise ImportError(
            f"{NAMESPACE}: {extension} is missing: this is the source tree or a damaged "
            "installation. Build and install it with `invar build cpu`."
        )
    stage1, origin = stage1_path(package)
    abi, contract, version = _stage1_identity(stage1, origin)
    _refuse_second_copy(extension)
    try:
        torch.ops.load_library(str(extension))
    except OSError as error:
        raise ImportError(
            f"{NAMESPACE}: {extension} does not load into torch {torch.__version__} "
            f"(2.10 or newer is expected): {error.__cause__ or error}"
        ) from error
    native = Native(extension)
    wanted_abi, wanted_contract = native.expected()
    if (abi, contract) != (wanted_abi, wanted_contract):
        raise ImportError(
            f"{NAMESPACE}: the stage 1 library {stage1} ({origin}) has ABI {abi} and contract "
            f"{contract}; expected ABI {wanted_abi} and contract {wanted_contract}. "
            "Both stages must come from one build: run `invar build cpu`."
        )
    try:
        native.attach(stage1)
    except RuntimeError as error:
        raise ImportError(f"{NAMESPACE}: {error}. Run `invar build cpu`.") from error
    return Loaded(native, extension, stage1, contract, version)
