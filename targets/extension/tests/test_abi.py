"""One library in every torch from the floor up, and the same library from any folder."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import site_builder
from conftest import GENERATION, Run, missing

LIBRARY = GENERATION / "site/batch_invariant_ops/lib_ops.so"


def interpreters() -> list[Path]:
    """Pythons with torch, of different versions: INVAR_TEST_PYTHONS, else CI's environments."""
    given = os.environ.get("INVAR_TEST_PYTHONS")
    if given:
        return [Path(p) for p in given.split(os.pathsep)]
    cache = Path(os.environ.get("INVAR_CI_CACHE", Path.home() / ".cache/invar-ci"))
    return sorted(p.parent / "bin/python" for p in cache.glob("torch-[0-9]*/.ready"))


def test_same_hash_in_every_torch(python: Run) -> None:
    pythons = interpreters()
    if len(pythons) < 2:
        missing("two environments with different torch versions (INVAR_TEST_PYTHONS)")
    script = (Path(__file__).parent / "hash_results.py").read_text()
    hashes: dict[str, str] = {}
    for interpreter in pythons:
        done = python(script, interpreter=str(interpreter))
        assert done.returncode == 0, done.stderr
        for line in done.stdout.splitlines():
            digest, version, level = line.split()
            hashes[f"{version} {level}"] = digest
    assert len({name.split()[0] for name in hashes}) > 1, hashes
    assert len({name.split()[1] for name in hashes}) > 1, hashes
    assert len(set(hashes.values())) == 1, hashes


def test_same_objects_from_another_folder(tmp_path: Path) -> None:
    """Two sources with everything that could carry a path: torch's headers and __FILE__."""
    if importlib.util.find_spec("yaml") is None:
        missing("PyYAML, to read target.yaml")
    built = []
    for name in ("one", "a longer/path"):
        targets = tmp_path / name / "targets"
        for part in ("extension/csrc", "cpu"):
            shutil.copytree(site_builder.TARGETS / part, targets / part)
        stage = site_builder.Stage("stage2", tmp_path / name / "work", targets)
        stage.data["sources"] = ["csrc/operators.cpp", "csrc/routing.cpp"]
        built.append([(stage.work / o).read_bytes() for o in stage.compile()])
    assert built[0] == built[1]
    for place in (tmp_path, Path(sys.prefix), Path.home()):
        assert not any(str(place).encode() in object_file for object_file in built[0]), place


def test_needs_nothing_but_torch_and_the_system() -> None:
    done = subprocess.run(
        ["readelf", "-d", "--wide", str(LIBRARY)], capture_output=True, text=True, check=True
    )
    needed = {
        line.split("[")[1].rstrip("]") for line in done.stdout.splitlines() if "NEEDED" in line
    }
    assert "libtorch_cpu.so" in needed
    assert not any("python" in name or "invar" in name for name in needed), needed
    assert "RUNPATH" not in done.stdout
    assert "RPATH" not in done.stdout


def test_torch_abi_audit() -> None:
    cache = Path(os.environ.get("INVAR_CI_CACHE", Path.home() / ".cache/invar-ci"))
    places = [os.environ["PATH"], str(Path(sys.executable).parent), str(cache / "audit/bin")]
    tool = shutil.which("torch-abi-audit", path=os.pathsep.join(places))
    if tool is None:
        missing("torch-abi-audit")
    done = subprocess.run(
        [str(tool), "--check", "torch", str(LIBRARY)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("symbol", ["_ZN3c10", "_ZN2at", "_ZN5torch"])
def test_no_unstable_symbols(symbol: str) -> None:
    done = subprocess.run(
        ["nm", "-D", "--undefined-only", str(LIBRARY)], capture_output=True, text=True, check=True
    )
    assert symbol not in done.stdout
