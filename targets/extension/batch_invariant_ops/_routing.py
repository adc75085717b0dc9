"""Routes aten operators on the CPU key to the invariant kernels.

The decision and the kernels are in C++. Here: the switch, the originals, and the
overrides whose Scalar arguments torch's stable ABI cannot hand to a C++ kernel.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from ._native import Native, Route

ORIGINALS = "batch_invariant_ops_original"
_CPU = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
_Kernel = Callable[..., Any]


class Router:
    """The process-wide switch. Its depth counts enable() calls and open contexts."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._lock = threading.RLock()
        self._depth = 0
        self._routes = native.routes()
        self._kernels: dict[str, Any] = {}
        self._originals: torch.library.Library | None = None
        self._overrides: torch.library.Library | None = None

    def enable(self) -> None:
        """Routes from now on, in every thread, until as many disable() calls."""
        with self._lock:
            if self._depth == 0:
                self._install()
                self._native.set_routing(True)
            self._depth += 1

    def disable(self) -> None:
        """Takes one enable() back; the last one ends routing for every thread."""
        with self._lock:
            if self._depth == 0:
                return
            self._depth -= 1
            if self._depth == 0:
                self._native.set_routing(False)
                # torch swaps a kernel without a lock: only a process without a
                # second Python thread may do it. Elsewhere the overrides stay and
                # hand every call on to the original.
                if threading.active_count() == 1:
                    self._remove()

    def is_enabled(self) -> bool:
        """Whether calls are routed now."""
        return self._native.routing()

    @contextmanager
    def enabled(self) -> Iterator[None]:
        """enable() on entry, disable() on exit, also when the body raises."""
        self.enable()
        try:
            yield
        finally:
            self.disable()

    def displaced(self) -> list[str]:
        """Routes in whose place another library has registered its own kernel since."""
        if not self._native.registered():
            return []
        return [r.name for r in self._routes if not self._is_ours(r)]

    def _is_ours(self, route: Route) -> bool:
        marker = "batch_invariant_ops" if route.native else "_routing.py"
        for line in torch._C._dispatch_dump_table(f"aten::{route.name}").splitlines():
            if line.startswith("CPU:"):
                return marker in line
        return False

    def _install(self) -> None:
        if self._native.registered():
            return
        self._define_originals()
        # Read before they are covered: an override that calls aten::mm recurses.
        for route in self._routes:
            self._kernels[route.name] = torch.library.get_kernel(f"aten::{route.name}", "CPU")
        self._overrides = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            # Some torch versions warn, once, about the first kernel that is covered.
            warnings.simplefilter("ignore")
            for route in self._routes:
                if not route.native:
                    self._overrides.impl(
                        route.name, self._scalar_override(route), "CPU", allow_override=True
                    )
        self._native.register()

    def _remove(self) -> None:
        if self._overrides is not None:
            self._overrides._destroy()
            self._overrides = None
        self._native.unregister()

    def _define_originals(self) -> None:
        """Operators with the schemas of aten's that run the kernel from before."""
        if self._originals is not None:
            return
        self._originals = torch.library.Library(ORIGINALS, "DEF")
        for route in self._routes:
            name, _, overload = route.name.partition(".")
            schema = getattr(getattr(torch.ops.aten, name), overload or "default")._schema
            self._originals.define(str(schema).removeprefix("aten::"))
            self._originals.impl(route.name, self._original(route.name), "CPU")

    def _original(self, name: str) -> _Kernel:
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return self._kernels[name].call_boxed(_CPU, *args, **kwargs)
            except Exception as error:
                # The C++ side raises it again. Passed through the stable ABI its text
                # would be lost in torch before 2.13, and logged to stderr.
                self._native.note_error(error)
                return torch.empty(0)

        return call

    def _scalar_override(self, route: Route) -> _Kernel:
        index, name = route.index, route.name
        kernels, native = self._kernels, self._native
        functional = torch.ops.batch_invariant_ops._route_add.default
        in_place = torch.ops.batch_invariant_ops._route_add_out.default

        def override(
            self: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1, **kwargs: Tensor
        ) -> Any:
            if isinstance(beta, complex) or isinstance(alpha, complex):
                native.count_scalar_call(index)
                return kernels[name].call_boxed(_CPU, self, a, b, beta=beta, alpha=alpha, **kwargs)
            out = self if name.endswith("_") else kwargs.get("out")
            if out is None:
                result = functional(index, self, a, b, beta, alpha)
                if result is not None:
                    return result
            elif in_place(index, self, a, b, beta, alpha, out):
                return out
            return kernels[name].call_boxed(_CPU, self, a, b, beta=beta, alpha=alpha, **kwargs)

        return override
