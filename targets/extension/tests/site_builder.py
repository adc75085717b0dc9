"""Builds both stages with the compiler into a folder laid out like an installed generation.

Only for tests that are run by hand: CI sets INVAR_TEST_SITE to a generation that
`invar build` made. Sources and flags come from cpu/target.yaml, as there.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

TARGETS = Path(__file__).resolve().parents[2]
CXX = os.environ.get("CXX", "g++")
Command = list[str]


def _run(command: Command, folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")


class Stage:
    """One stage of the target, compiled in a work folder with the sources below src."""

    def __init__(self, name: str, work: Path, targets: Path = TARGETS) -> None:
        import yaml  # only here: a run on a ready generation does without PyYAML

        self.data: dict[str, Any] = yaml.safe_load((targets / "cpu/target.yaml").read_text())[name]
        self.name, self.work = name, work
        (work / name).mkdir(parents=True)
        if not (work / "src").exists():
            (work / "src").symlink_to(targets)

    def _flags(self, key: str) -> list[str]:
        root = str(Path(torch.__file__).parent)
        values = (flag.replace("{torch}", root) for flag in self.data[key])
        return [value.replace("{version}", "0.1.0") for value in values]

    def _objects(self) -> list[tuple[str, str, list[str]]]:
        """Name, source and own flags of each object."""
        if "sources" in self.data:
            return [(Path(s).stem, s, []) for s in self.data["sources"]]
        mine = [o for o in self.data["objects"] if platform.machine() in o["arches"]]
        return [(o["name"], o["source"], o["flags"]) for o in mine]

    def compile(self) -> list[str]:
        """Compiles; returns the object files, relative to the work folder."""
        source = f"src/{self.data['from']}"
        headers = self.data["headers"] if "sources" in self.data else []
        include = [f"-Isrc/{folder}" for folder in headers]
        commands, objects = [], []
        for name, file, own in self._objects():
            objects.append(f"{self.name}/{name}.o")
            flags = [*self._flags("flags"), *own, *include]
            commands.append([CXX, *flags, "-c", f"{source}/{file}", "-o", objects[-1]])
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda command: _run(command, self.work), commands))
        return objects

    def build(self) -> Path:
        """Compiles and links; returns the library."""
        library: Path = self.work / self.name / self.data["library"]
        objects = self.compile()
        _run([CXX, "-shared", "-o", str(library), *objects, *self._flags("link")], self.work)
        return library


def build_site(folder: Path) -> Path:
    """A whole generation below folder; returns it."""
    work = folder / "work"
    library = folder / "ops/cpu/lib/libinvar_cpu.so"
    library.parent.mkdir(parents=True)
    Stage("stage1", work).build().rename(library)
    package = folder / "site/batch_invariant_ops"
    shutil.copytree(
        TARGETS / "extension/batch_invariant_ops",
        package,
        ignore=shutil.ignore_patterns("__pycache__", "*.so"),
    )
    Stage("stage2", work).build().rename(package / "lib_ops.so")
    return folder
