"""Levels 6 and 7 on a GPU: the operators of the package, on tensors that lie there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .package import Package


def put(t: torch.Tensor, device: str) -> torch.Tensor:
    """The tensor on the device with the layout that it has here, gaps included."""
    whole = t.as_strided((t.untyped_storage().nbytes() // t.element_size(),), (1,), 0)
    return whole.to(device).as_strided(t.size(), t.stride(), t.storage_offset())


def there_and_back(op: Callable[..., Any], device: str) -> Callable[..., Any]:
    """op on the device, for arguments and results on the host."""

    def moved(value: Any) -> Any:
        return put(value, device) if isinstance(value, torch.Tensor) else value

    def call(*args: Any, **kwargs: Any) -> Any:
        out = op(*[moved(a) for a in args], **{k: moved(v) for k, v in kwargs.items()})
        if isinstance(out, tuple):
            return tuple(o.cpu() if isinstance(o, torch.Tensor) else o for o in out)
        return out.cpu()

    return call


class Device(Package):
    """The package on a device: one level, the device, and the routes of its key."""

    def __init__(self, module: str, device: str) -> None:
        super().__init__(module)
        self._device = device

    def levels(self) -> list[tuple[str, bool]]:
        """One level: the device."""
        return [(self._device, True)]

    def isa(self) -> str | None:
        """The level in use."""
        return self._device

    def select_isa(self, name: str | None) -> None:
        """There is nothing to select."""

    def counts(self) -> dict[str, int]:
        """How often each route of the device's key took a call."""
        report = self.module.report()
        routes = report.cuda.routes if self._device == "cuda" else report.routes
        return {r.name: r.routed for r in routes}
