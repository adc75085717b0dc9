"""The package under test: what its two stages say, levels, routing and counts."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any


class Stage1:
    """The C functions of the CPU library that say what it is (invar_cpu.h).

    They are asked directly, not through stage 2: what is compared with the
    receipt is the library's own word.
    """

    def __init__(self, path: str) -> None:
        # The process holds this file already, so this is the same copy of it.
        self._lib = ctypes.CDLL(path)
        for name in ("contract", "version", "operator_name", "isa_name", "isa_current"):
            getattr(self._lib, f"invar_cpu_{name}").restype = ctypes.c_char_p

    def text(self, name: str) -> str:
        """A function without arguments that gives text; "" for NULL."""
        value = getattr(self._lib, f"invar_cpu_{name}")()
        return "" if value is None else str(value.decode())

    def number(self, name: str, *arguments: int) -> int:
        """A function that gives a number."""
        return int(getattr(self._lib, f"invar_cpu_{name}")(*arguments))

    def names(self, count: str, name: str) -> list[str]:
        """A list by index."""
        ask = getattr(self._lib, f"invar_cpu_{name}")
        return [ask(i).decode() for i in range(self.number(count))]

    def levels(self) -> list[tuple[str, bool]]:
        """Instruction set levels, slowest first, and whether this machine runs them."""
        names = self.names("isa_count", "isa_name")
        return [(n, bool(self.number("isa_available", i))) for i, n in enumerate(names)]


class Package:
    """What levels 4 to 7 ask of the package."""

    def __init__(self, module: str) -> None:
        self.module: Any = importlib.import_module(module)
        self.stage1 = Stage1(self.module.library_path())

    def levels(self) -> list[tuple[str, bool]]:
        """What may be chosen between, slowest first, and whether it runs here."""
        return self.stage1.levels()

    def isa(self) -> str | None:
        """The level in use."""
        name: str | None = self.module.isa()
        return name

    def select_isa(self, name: str | None) -> None:
        """Makes a level current in the whole process."""
        self.module.select_isa(name)

    def counts(self) -> dict[str, int]:
        """Calls that each routed aten operator took, by the package's own count."""
        return {r.name: r.routed for r in self.module.report().routes}

    def routing(self) -> AbstractContextManager[None]:
        """A context in which aten is routed."""
        context: AbstractContextManager[None] = self.module.enabled()
        return context

    @contextmanager
    def unrouted(self) -> Iterator[None]:
        """A context in which aten is torch's own, whatever was enabled before."""
        depth = 0
        while self.module.is_enabled():
            self.module.disable()
            depth += 1
        try:
            yield
        finally:
            for _ in range(depth):
                self.module.enable()


def describe(module: str) -> dict[str, Any]:
    """Levels 4 and 5: versions of both stages, levels, what is not routed."""
    try:
        return _describe(Package(module))
    except (AttributeError, OSError, RuntimeError) as e:
        return {"error": f"{type(e).__name__}: {e}"}


def _describe(package: Package) -> dict[str, Any]:
    stage1, module = package.stage1, package.module
    abi, contract = _expected(module)
    report = module.report()
    return {
        "version": module.__version__,
        "library": module.library_path(),
        "abi": stage1.number("abi_version"),
        "expected_abi": abi,
        "contract": stage1.text("contract"),
        "expected_contract": contract,
        "stage1_version": stage1.text("version"),
        "operators": stage1.names("operator_count", "operator_name"),
        "levels": [{"name": n, "available": a} for n, a in stage1.levels()],
        "current": package.isa() or "",
        "routes": [r.name for r in report.routes],
        "displaced": [r.name for r in report.routes if r.displaced],
        "not_routed": [f"{name}: {why}" for name, why in report.not_routed.items()],
    }


def describe_cuda(path: str) -> dict[str, Any]:
    """What the library with GPU code says about itself; it needs no GPU for that."""
    try:
        library = ctypes.CDLL(path)
        for name in ("contract", "version", "arches"):
            getattr(library, f"invar_cuda_{name}").restype = ctypes.c_char_p
        return {
            "abi": int(library.invar_cuda_abi_version()),
            "contract": library.invar_cuda_contract().decode(),
            "version": library.invar_cuda_version().decode(),
            "arches": library.invar_cuda_arches().decode(),
        }
    except (AttributeError, OSError) as e:
        return {"error": f"{type(e).__name__}: {e}"}


def _expected(module: Any) -> tuple[int, str]:
    """ABI and contract that stage 2 was compiled for, from the library itself."""
    from pathlib import Path

    lib = ctypes.CDLL(str(Path(module.__file__).resolve().parent / "lib_ops.so"))
    contract = lib.invar_ops_expected_contract
    contract.restype = ctypes.c_char_p
    return int(lib.invar_ops_expected_abi()), str(contract().decode())
