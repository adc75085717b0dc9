"""The CUDA part: lib_ops_cuda.so beside this file, on stage 1 of CUDA.

The wheel of the cuda flavour has it. It is loaded where torch has CUDA; a GPU or a
driver is not needed for that.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

import torch

from ._native import Native

NAMESPACE = "batch_invariant_ops"
STAGE1_VARIABLE = "INVAR_CUDA_LIBRARY"
_EXTENSION = "lib_ops_cuda.so"
_STAGE1 = Path("ops", "cuda", "lib", "libinvar_cuda.so")


@dataclass(frozen=True)
class Cuda:
    """The loaded CUDA part."""

    native: Native
    extension: Path
    stage1: Path
    contract: str
    stage1_version: str
    arches: str


@dataclass(frozen=True)
class NoCuda:
    """Why there is no CUDA part in this process."""

    reason: str


def _torch_library() -> Path:
    return Path(torch.__file__).resolve().parent / "lib" / "libtorch_cuda.so"


def stage1_path(package: Path) -> tuple[Path, str]:
    """Where stage 1 of CUDA is looked for, and why there."""
    forced = os.environ.get(STAGE1_VARIABLE)
    if forced:
        return Path(forced), f"named by {STAGE1_VARIABLE}"
    return package.parents[1] / _STAGE1, "beside the installed package"


def _identity(path: Path, origin: str) -> tuple[int, str, str, str]:
    """ABI, contract, version and architectures of a stage 1 library."""
    place = f"the CUDA stage 1 library {path} ({origin})"
    if not path.is_absolute():
        raise ImportError(
            f"{NAMESPACE}: {STAGE1_VARIABLE} must be an absolute path, got {os.fspath(path)!r}"
        )
    if not path.exists():
        raise ImportError(
            f"{NAMESPACE}: {place} does not exist. "
            f"Build and install it with `invar build cuda`, or set {STAGE1_VARIABLE}."
        )
    try:
        library = ctypes.CDLL(str(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        texts = [getattr(library, f"invar_cuda_{n}") for n in ("contract", "version", "arches")]
        abi = library.invar_cuda_abi_version
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"{NAMESPACE}: {place} is not a usable stage 1 library: {error}. "
            "Build and install it again with `invar build cuda`."
        ) from error
    abi.restype = ctypes.c_int32
    for text in texts:
        text.restype = ctypes.c_char_p
    contract, version, arches = (text().decode() for text in texts)
    return int(abi()), contract, version, arches


def load(package: Path) -> Cuda | NoCuda:
    """Loads the CUDA part; ImportError when it is there and no good."""
    extension = package / _EXTENSION
    if not extension.exists():
        return NoCuda("this is the cpu flavour: `invar build cuda` makes the other")
    if not _torch_library().exists():
        return NoCuda(f"torch {torch.__version__} has no CUDA: {_torch_library()} is missing")
    stage1, origin = stage1_path(package)
    abi, contract, version, arches = _identity(stage1, origin)
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
            f"{NAMESPACE}: the CUDA stage 1 library {stage1} ({origin}) has ABI {abi} and contract "
            f"{contract}; expected ABI {wanted_abi} and contract {wanted_contract}. "
            "Both stages must come from one build: run `invar build cuda`."
        )
    try:
        native.attach(stage1)
    except RuntimeError as error:
        raise ImportError(f"{NAMESPACE}: {error}. Run `invar build cuda`.") from error
    return Cuda(native, extension, stage1, contract, version, arches)
