"""Finds operators by name: of a namespace, of a module, of torch, of a file."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from dataclasses import dataclass
from typing import Any

import torch

from .cases import Operator


@dataclass(frozen=True)
class Place:
    """Where an operator came from, as a script that runs alone finds it again."""

    imports: str
    expression: str


class Locator:
    """Resolves "mm", "torch:mm", "package.module:function" and "file.py:function"."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self.places: dict[str, str] = {}

    def __call__(self, name: str) -> Operator:
        """The operator, or AttributeError and ImportError that name what was asked."""
        place, operator = self._find(name)
        self.places[name] = place.expression
        return operator

    def place(self, name: str) -> Place:
        """How a script finds it."""
        return self._find(name)[0]

    def _find(self, name: str) -> tuple[Place, Operator]:
        source, colon, function = name.partition(":")
        if not colon:
            source, function = self._namespace, name
        if source.endswith(".py"):
            return self._file(source, function)
        try:
            module = importlib.import_module(source)
        except ImportError:
            if not self._operators(source, function):
                raise
            module = None
        if module is not None and _has(module, function):
            place = Place(f"import {source}", f"{source}.{function}")
            if source.startswith("invar_probe."):
                # No other process has this package: its text goes into the script.
                place = Place(_body(module), function)
            return place, _get(module, function)
        found = self._operators(source, function)
        if found is None:
            raise AttributeError(
                f"{name}: neither {source}.{function} nor torch.ops.{source}.{function}"
            )
        imports = f"import {source}" if module is not None else "import torch"
        return Place(imports, f"torch.ops.{source}.{function}"), found

    @staticmethod
    def _operators(namespace: str, function: str) -> Operator | None:
        try:
            found: Operator = getattr(getattr(torch.ops, namespace), function)
        except AttributeError:
            return None
        return found

    @staticmethod
    def _file(path: str, function: str) -> tuple[Place, Operator]:
        full = os.path.abspath(path)
        key = "invar_verified_" + "".join(c if c.isalnum() else "_" for c in full)
        if key not in sys.modules:
            spec = importlib.util.spec_from_file_location(key, full)
            if spec is None or spec.loader is None:
                raise ImportError(f"{path} cannot be loaded as a Python file")
            module = importlib.util.module_from_spec(spec)
            sys.modules[key] = module
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del sys.modules[key]
                raise
        imports = f"import runpy\n\nmodule = runpy.run_path({full!r})"
        return Place(imports, f"module[{function!r}]"), _get(sys.modules[key], function)


def _body(module: Any) -> str:
    text = inspect.getsource(module)
    future = "from __future__ import annotations\n"
    return text[text.index(future) + len(future) :].strip()


def _has(module: Any, function: str) -> bool:
    try:
        _get(module, function)
    except AttributeError:
        return False
    return True


def _get(module: Any, function: str) -> Operator:
    at: Any = module
    for part in function.split("."):
        at = getattr(at, part)
    if not callable(at):
        raise AttributeError(f"{function} is not a function")
    found: Operator = at
    return found
