"""The C functions of lib_ops.so, called through ctypes; operators are torch's."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ERROR_SIZE = 4096


@dataclass(frozen=True)
class Route:
    """One aten operator that can be routed."""

    index: int
    name: str
    native: bool  # registered from C++; otherwise from Python


class Native:
    """Bindings of one loaded lib_ops.so or lib_ops_cuda.so."""

    def __init__(self, path: Path) -> None:
        self._lib = ctypes.CDLL(str(path))
        text = ctypes.c_char_p
        for name, result, arguments in (
            ("expected_abi", ctypes.c_int32, []),
            ("expected_contract", text, []),
            ("registered", ctypes.c_int32, []),
            ("routing", ctypes.c_int32, []),
            ("set_routing", None, [ctypes.c_int32]),
            ("route_count", ctypes.c_int64, []),
            ("route_name", text, [ctypes.c_int64]),
            ("route_native", ctypes.c_int32, [ctypes.c_int64]),
            ("routed_calls", ctypes.c_uint64, [ctypes.c_int64]),
            ("why_count", ctypes.c_int32, []),
            ("why_text", text, [ctypes.c_int32]),
            ("original_calls", ctypes.c_uint64, [ctypes.c_int64, ctypes.c_int32]),
            ("count_scalar_call", None, [ctypes.c_int64]),
            ("note_error", None, [text]),
        ):
            self._declare(name, result, arguments)

    def _declare(self, name: str, result: Any, arguments: list[Any]) -> Any:
        function = getattr(self._lib, f"invar_ops_{name}")
        function.restype = result
        function.argtypes = arguments
        return function

    def _checked(self, name: str, *arguments: bytes | None) -> None:
        error = ctypes.create_string_buffer(_ERROR_SIZE)
        function = getattr(self._lib, f"invar_ops_{name}")
        if function(*arguments, error, ctypes.c_int64(_ERROR_SIZE)) != 0:
            raise RuntimeError(error.value.decode(errors="replace"))

    def attach(self, path: Path) -> None:
        """Opens the stage 1 library; RuntimeError when it does not fit."""
        self._checked("attach", str(path).encode())

    def expected(self) -> tuple[int, str]:
        """ABI and contract of the stage 1 that lib_ops.so was built for."""
        return int(self._lib.invar_ops_expected_abi()), _text(
            self._lib.invar_ops_expected_contract()
        )

    def isa(self) -> str | None:
        """The instruction set level in use; None when the forced one is missing."""
        name = self._declare("isa_current", ctypes.c_char_p, [])()
        return None if name is None else _text(name)

    def select_isa(self, name: str | None) -> None:
        """Makes a level current in the whole process."""
        self._checked("isa_select", None if name is None else name.encode())

    def prepare(self) -> None:
        """CUDA only: loads all kernels onto the current device."""
        self._checked("prepare")

    def register(self) -> None:
        """Puts the C++ overrides in front of the aten kernels."""
        self._checked("register")

    def unregister(self) -> None:
        """Takes them away."""
        self._checked("unregister")

    def registered(self) -> bool:
        """Whether the overrides are in place."""
        return bool(self._lib.invar_ops_registered())

    def set_routing(self, on: bool) -> None:
        """Switches what registered overrides do."""
        self._lib.invar_ops_set_routing(int(on))

    def routing(self) -> bool:
        """Whether overrides route."""
        return bool(self._lib.invar_ops_routing())

    def routes(self) -> list[Route]:
        """Every aten operator that is routed while routing is on."""
        return [
            Route(
                i,
                _text(self._lib.invar_ops_route_name(i)),
                bool(self._lib.invar_ops_route_native(i)),
            )
            for i in range(int(self._lib.invar_ops_route_count()))
        ]

    def routed_calls(self, index: int) -> int:
        """Calls of a route that ran on an invariant kernel."""
        return int(self._lib.invar_ops_routed_calls(index))

    def original_calls(self, index: int) -> dict[str, int]:
        """Calls of a route that went to the original kernel, by reason."""
        calls: dict[str, int] = {}
        for why in range(1, int(self._lib.invar_ops_why_count())):
            count = int(self._lib.invar_ops_original_calls(index, why))
            if count:
                calls[_text(self._lib.invar_ops_why_text(why))] = count
        return calls

    def count_scalar_call(self, index: int) -> None:
        """Counts a call that goes to the original for its alpha or beta."""
        self._lib.invar_ops_count_scalar_call(index)

    def note_error(self, error: BaseException) -> None:
        """Keeps the text of an original kernel's error for the C++ side."""
        self._lib.invar_ops_note_error(str(error).encode(errors="replace"))


def _text(value: bytes) -> str:
    return value.decode()
