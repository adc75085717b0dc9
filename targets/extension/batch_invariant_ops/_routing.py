"""Routes aten operators on the CPU and CUDA keys to the invariant kernels.

The decision and the kernels are in C++. Here: the switch, the originals, and the
overrides whose Scalar arguments torch's stable ABI cannot hand to a C++ kernel.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ._native import Native, Route

ORIGINALS = "batch_invariant_ops_original"
_ONE: Any = 1
_Kernel = Callable[..., Any]


@dataclass(frozen=True)
class Backend:
    """A loaded library of stage 2 and the dispatch key of its kernels."""

    key: str  # "CPU" or "CUDA"
    native: Native

    @property
    def keys(self) -> torch._C.DispatchKeySet:
        """The key as call_boxed takes it."""
        return torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, self.key))


class Router:
    """The process-wide switch. Its depth counts enable() calls and open contexts."""

    def __init__(self, backends: Sequence[Backend]) -> None:
        self._backends = tuple(backends)
        self._lock = threading.RLock()
        self._depth = 0
        self._routes = backends[0].native.routes()  # the same in every library
        self._kernels: dict[tuple[str, str], Any] = {}
        self._originals: torch.library.Library | None = None
        self._overrides: torch.library.Library | None = None

    def enable(self) -> None:
        """Routes from now on, in every thread, until as many disable() calls."""
        with self._lock:
            if self._depth == 0:
                self._install()
                self._switch(True)
            self._depth += 1

    def disable(self) -> None:
        """Takes one enable() back; the last one ends routing for every thread."""
        with self._lock:
            if self._depth == 0:
                return
            self._depth -= 1
            if self._depth == 0:
                self._switch(False)
                # torch swaps a kernel without a lock: only a process without a
                # second Python thread may do it. Elsewhere the overrides stay and
                # hand every call on to the original.
                if threading.active_count() == 1:
                    self._remove()

    def _switch(self, on: bool) -> None:
        for backend in self._backends:
            backend.native.set_routing(on)

    def is_enabled(self) -> bool:
        """Whether calls are routed now."""
        return self._backends[0].native.routing()

    @contextmanager
    def enabled(self) -> Iterator[None]:
        """enable() on entry, disable() on exit, also when the body raises."""
        self.enable()
        try:
            yield
        finally:
            self.disable()

    def displaced(self, key: str = "CPU") -> list[str]:
        """Routes in whose place another library has registered its own kernel since."""
        if not any(b.key == key and b.native.registered() for b in self._backends):
            return []
        return [r.name for r in self._routes if not self._is_ours(r, key)]

    def _is_ours(self, route: Route, key: str) -> bool:
        marker = "batch_invariant_ops" if route.native else "_routing.py"
        for line in torch._C._dispatch_dump_table(f"aten::{route.name}").splitlines():
            if line.startswith(f"{key}:"):
                return marker in line
        return False

    def _install(self) -> None:
        if self._overrides is not None:
            return
        self._define_originals()
        # Read before they are covered: an override that calls aten::mm recurses.
        for backend in self._backends:
            for route in self._routes:
                self._kernels[backend.key, route.name] = torch.library.get_kernel(
                    f"aten::{route.name}", backend.key
                )
        self._overrides = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            # Some torch versions warn, once, about the first kernel that is covered.
            warnings.simplefilter("ignore")
            for backend in self._backends:
                for route in self._routes:
                    if not route.native:
                        override = self._scalar_override(route, backend)
                        self._overrides.impl(route.name, override, backend.key, allow_override=True)
        for backend in self._backends:
            backend.native.register()

    def _remove(self) -> None:
        if self._overrides is not None:
            self._overrides._destroy()
            self._overrides = None
        for backend in self._backends:
            backend.native.unregister()

    def _define_originals(self) -> None:
        """Operators with the schemas of aten's that run the kernel from before."""
        if self._originals is not None:
            return
        self._originals = torch.library.Library(ORIGINALS, "DEF")
        for route in self._routes:
            name, _, overload = route.name.partition(".")
            schema = getattr(getattr(torch.ops.aten, name), overload or "default")._schema
            self._originals.define(str(schema).removeprefix("aten::"))
            for backend in self._backends:
                self._originals.impl(route.name, self._original(route.name, backend), backend.key)

    def _original(self, name: str, backend: Backend) -> _Kernel:
        keys = backend.keys

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return self._kernels[backend.key, name].call_boxed(keys, *args, **kwargs)
            except Exception as error:
                # The C++ side raises it again. Passed through the stable ABI its text
                # would be lost in torch before 2.13, and logged to stderr.
                backend.native.note_error(error)
                return torch.empty(0)

        return call

    def _scalar_override(self, route: Route, backend: Backend) -> _Kernel:
        index, name, keys = route.index, route.name, backend.keys
        kernel, native = self._kernels[backend.key, name], backend.native
        own = torch.ops.batch_invariant_ops
        functional = own._route_add.default
        in_place = own._route_add_out.default

        def override(
            self: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1, **kwargs: Tensor
        ) -> Any:
            if isinstance(beta, complex) or isinstance(alpha, complex):
                native.count_scalar_call(index)
                return kernel.call_boxed(keys, self, a, b, beta=beta, alpha=alpha, **kwargs)
            out = self if name.endswith("_") else kwargs.get("out")
            if out is None:
                result = functional(index, self, a, b, beta, alpha)
                if result is not None:
                    return result
            elif in_place(index, self, a, b, beta, alpha, out):
                return out
            return kernel.call_boxed(keys, self, a, b, beta=beta, alpha=alpha, **kwargs)

        if "." in name or name.endswith("_"):
            return override
        plain = getattr(own, f"_route_{name}").default

        def functional_override(
            self: Tensor, a: Tensor, b: Tensor, *, beta: Any = _ONE, alpha: Any = _ONE
        ) -> Any:
            # torch leaves out arguments that have their defaults.
            if beta is _ONE and alpha is _ONE:
                result = plain(self, a, b)
                if result is not None:
                    return result
                return kernel.call_boxed(keys, self, a, b)
            return override(self, a, b, beta=beta, alpha=alpha)

        return functional_override
