"""Builds both stages with g++ into a folder laid out like an installed generation.

Only for tests that are run by hand: CI sets INVAR_TEST_SITE to a generation that
`invar build` made. The commands come from the two build.yaml files, as there.
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
import yaml

EXTENSION = Path(__file__).resolve().parents[1]
KERNELS = EXTENSION.parent / "cpu" / "kernels"
CXX = os.environ.get("CXX", "g++")


def _load(path: Path) -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(path.read_text())
    return data


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")


def _compile(commands: list[list[str]], folder: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(lambda command: _run(command, folder), commands):
            pass


def build_stage1(library: Path, objects: Path) -> None:
    """Compiles libinvar_cpu.so for this machine."""
    stage1 = _load(KERNELS / "build.yaml")["stage1"]
    mine = [o for o in stage1["objects"] if platform.machine() in o["arches"]]
    _compile(
        [
            [CXX, *stage1["flags"], *o["flags"], "-c", o["source"], "-o"]
            + [str(objects / f"{o['name']}.o")]
            for o in mine
        ],
        KERNELS,
    )
    library.parent.mkdir(parents=True, exist_ok=True)
    named = [str(objects / f"{o['name']}.o") for o in mine]
    _run([CXX, "-shared", *named, *stage1["link"], "-o", str(library)], KERNELS)


def extension_commands(source: Path, objects: Path, output: Path) -> list[list[str]]:
    """The commands of stage 2; the last one links."""
    plan = _load(source / "build.yaml")
    root = Path(torch.__file__).parent
    places = {
        "{torch_include}": str(root / "include"),
        "{torch_lib}": str(root / "lib"),
        "{stage1_include}": str(KERNELS),
    }

    def fill(flags: list[str]) -> list[str]:
        for key, value in places.items():
            flags = [flag.replace(key, value) for flag in flags]
        return flags

    named = {s: str(objects / (Path(s).stem + ".o")) for s in plan["sources"]}
    commands = [
        [CXX, *fill(plan["compile_flags"]), "-c", s, "-o", o] for s, o in named.items()
    ]
    commands.append([CXX, *named.values(), *fill(plan["link_flags"]), "-o", str(output)])
    return commands


def build_extension(library: Path, objects: Path, source: Path = EXTENSION) -> None:
    """Compiles lib_ops.so against the torch that runs this."""
    library.parent.mkdir(parents=True, exist_ok=True)
    objects.mkdir(parents=True, exist_ok=True)
    *compiles, link = extension_commands(source, objects, library)
    _compile(compiles, source)
    _run(link, source)


def build_site(folder: Path) -> Path:
    """A whole generation below folder; returns it."""
    objects = folder / "objects"
    objects.mkdir(parents=True)
    build_stage1(folder / "ops/cpu/lib/libinvar_cpu.so", objects)
    package = folder / "site/batch_invariant_ops"
    shutil.copytree(
        EXTENSION / "batch_invariant_ops",
        package,
        ignore=shutil.ignore_patterns("__pycache__", "*.so"),
    )
    build_extension(package / "lib_ops.so", objects / "extension")
    return folder
