"""Ascend: what is there, and the operators on a device.

The sweeps and the judgement work on host tensors. An operator on a device is
wrapped: arguments go there with their strides and offsets, results come back.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

# The symbol of a libascendcl that only pretends to have devices.
LOOK_ALIKE = "aclLookAlikeDevice"

# Below this many rows the control splits its reduction, as kernels do that are
# tuned to fill all cores with few rows.
FEW_ROWS = 16


def describe(libraries: list[str]) -> dict[str, Any]:
    """Devices of torch_npu, what vllm-ascend would find, whether files open."""
    out: dict[str, Any] = {"count": 0, "name": "", "simulated": _simulated()}
    out["triton"] = importlib.util.find_spec("triton") is not None
    out["vllm_ascend"] = _folder("vllm_ascend")
    out["opened"] = {path: _opens(path) for path in libraries}
    try:
        import torch_npu  # type: ignore[import-not-found]

        out["torch_npu"] = str(torch_npu.__version__)
        npu: Any = torch.npu  # type: ignore[attr-defined]
        out["deterministic_level"] = hasattr(npu, "set_deterministic_level")
        if npu.is_available():
            out["count"] = int(npu.device_count())
            out["name"] = str(npu.get_device_name(0))
    except Exception as e:  # what a broken driver raises is not ours to name
        out["error"] = f"{type(e).__name__}: {e}".splitlines()[0]
    return out


def _simulated() -> str:
    """What a look-alike libascendcl says of itself; empty for the real one."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        paths = {line.split(None, 5)[5].strip() for line in maps if "libascendcl.so" in line}
    for path in paths:
        function = getattr(ctypes.CDLL(path), LOOK_ALIKE, None)
        if function is not None:
            function.restype = ctypes.c_char_p
            return bytes(function()).decode()
    return ""


def _folder(module: str) -> str:
    found = importlib.util.find_spec(module)
    if found is None or not found.submodule_search_locations:
        return ""
    return os.path.realpath(next(iter(found.submodule_search_locations)))


def _opens(path: str) -> str:
    """Why the loader refuses a library; empty when it takes it.

    torch_npu has one text for every cause, and it names another library.
    """
    try:
        ctypes.CDLL(path)
    except OSError as e:
        return str(e)
    return ""


def put(t: torch.Tensor) -> torch.Tensor:
    """The tensor on the device with the layout that it has here."""
    whole = t.as_strided((t.untyped_storage().nbytes() // t.element_size(),), (1,), 0)
    return whole.to("npu").as_strided(t.size(), t.stride(), t.storage_offset())


def there_and_back(op: Callable[..., Any]) -> Callable[..., Any]:
    """op on the device, for arguments and results on the host."""

    def call(*args: Any, **kwargs: Any) -> Any:
        moved = [put(a) if isinstance(a, torch.Tensor) else a for a in args]
        out = op(*moved, **kwargs)
        if isinstance(out, tuple):
            return tuple(o.cpu() if isinstance(o, torch.Tensor) else o for o in out)
        return out.cpu()

    return call


def control(mm: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """A product that depends on the batch on purpose: made of the operator itself."""

    def call(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        if x.shape[0] >= FEW_ROWS:
            return mm(x, w)
        half = x.shape[1] // 2
        left = mm(x[:, :half].contiguous(), w[:half].contiguous())
        return left + mm(x[:, half:].contiguous(), w[half:].contiguous())

    return call


class Device:
    """The package under test on a device: what levels 6 and 7 ask of it.

    There are no levels of instructions to choose from, and nothing is routed.
    """

    def __init__(self) -> None:
        self.stage1 = self

    def levels(self) -> list[tuple[str, bool]]:
        """One level: the device."""
        return [("npu", True)]

    def isa(self) -> str | None:
        """The level in use."""
        return "npu"

    def select_isa(self, name: str | None) -> None:
        """There is nothing to select."""

    def counts(self) -> dict[str, int]:
        """Nothing counts calls."""
        return {}

    def routing(self) -> AbstractContextManager[None]:
        """Nothing is routed."""
        return nullcontext()

    @contextmanager
    def unrouted(self) -> Iterator[None]:
        """Nothing was routed."""
        yield


class Resolver:
    """Finds operators by name and wraps them for the device."""

    def __init__(self, namespace: str) -> None:
        self._ops = getattr(torch.ops, namespace)

    def __call__(self, name: str) -> Callable[..., Any]:
        kind, colon, rest = name.partition(":")
        if kind == "_control" and colon:
            return there_and_back(control(getattr(self._ops, rest)))
        if kind == "torch" and colon:
            return there_and_back(getattr(torch, rest))
        return there_and_back(getattr(self._ops, name))
