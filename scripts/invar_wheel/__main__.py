"""python -m invar_wheel PROJECT OUT: build PROJECT's wheel into the folder OUT.

The build backend that pyproject.toml names does the work (PEP 517), or
setuptools where there is none: without isolation, without pip, so that the
torch and torch_npu of this very Python are compiled against.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any


def read(project: str) -> dict[str, Any]:
    """The [build-system] table of the project; empty where there is none."""
    path = os.path.join(project, "pyproject.toml")
    if not os.path.exists(path):
        return {}
    parser: ModuleType | None = None
    for name in ("tomllib", "tomli", "pip._vendor.tomli", "setuptools._vendor.tomli"):
        try:
            parser = importlib.import_module(name)
            break
        except ImportError:
            continue
    if parser is None:
        sys.exit("no TOML parser in this Python: install tomli, or use Python 3.11 or newer")
    with open(path, "rb") as f:
        table = parser.load(f).get("build-system", {})
    return table if isinstance(table, dict) else {}


def main(project: str, out: str) -> None:
    """Builds the wheel of project into the folder out."""
    table = read(project)
    os.chdir(project)
    for entry in reversed(table.get("backend-path", [])):
        sys.path.insert(0, os.path.join(project, entry))
    name = table.get("build-backend", "setuptools.build_meta:__legacy__")
    module, _, attribute = name.partition(":")
    backend: Any = importlib.import_module(module)
    for part in attribute.split(".") if attribute else []:
        backend = getattr(backend, part)
    sys.argv = [os.path.join(project, "setup.py")]  # what setup.py may look at
    print(backend.build_wheel(out))


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
