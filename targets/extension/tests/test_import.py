"""How the package finds stage 1, and what it says when it does not fit."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import GENERATION, Run

STAGE1 = Path("ops/cpu/lib/libinvar_cpu.so")
PRINT = "import batch_invariant_ops as b; print(b.library_path(), b.contract())"
FAKE = """
int invar_cpu_abi_version(void) { return ABI; }
const char *invar_cpu_contract(void) { return CONTRACT; }
const char *invar_cpu_version(void) { return "9.9.9"; }
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A generation of its own, to be damaged."""
    folder = tmp_path / "generation"
    shutil.copytree(GENERATION / "site", folder / "site")
    (folder / STAGE1.parent).mkdir(parents=True)
    shutil.copy(GENERATION / STAGE1, folder / STAGE1)
    return folder


def fake_stage1(path: Path, abi: int, contract: str) -> None:
    """A library that has the identity of a stage 1, and nothing else."""
    source = path.parent / "fake.c"
    source.write_text(FAKE)
    subprocess.run(
        [
            os.environ.get("CC", "gcc"),
            "-shared",
            "-fPIC",
            f"-DABI={abi}",
            f'-DCONTRACT="{contract}"',
            str(source),
            "-o",
            str(path),
        ],
        check=True,
    )


def import_error(python: Run, site: Path, env: dict[str, str] | None = None) -> str:
    done = python("import batch_invariant_ops", site=site, env=env)
    assert done.returncode == 1, done.stdout
    assert "ImportError" in done.stderr, done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_default_place(python: Run, copy: Path) -> None:
    done = python(PRINT, site=copy / "site")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == str(copy / STAGE1)


def test_without_stage1_stage2_fails(python: Run, copy: Path) -> None:
    (copy / STAGE1).unlink()
    message = import_error(python, copy / "site")
    assert f"{copy / STAGE1} (beside the installed package) does not exist" in message
    assert "invar build cpu" in message


def test_variable_names_another_library(python: Run, copy: Path) -> None:
    moved = copy / "elsewhere.so"
    (copy / STAGE1).rename(moved)
    done = python(PRINT, site=copy / "site", env={"INVAR_CPU_LIBRARY": str(moved)})
    assert done.stdout.split()[0] == str(moved), done.stderr
    message = import_error(python, copy / "site", {"INVAR_CPU_LIBRARY": "/nowhere/lib.so"})
    assert "/nowhere/lib.so (named by INVAR_CPU_LIBRARY) does not exist" in message
    message = import_error(python, copy / "site", {"INVAR_CPU_LIBRARY": "elsewhere.so"})
    assert "must be an absolute path, got 'elsewhere.so'" in message


def test_a_moving_link_is_resolved_first(python: Run, copy: Path) -> None:
    """`current` may be switched while a process imports: it stays in its generation."""
    current = copy.parent / "current"
    current.symlink_to(copy)
    done = python(PRINT, site=current / "site")
    assert done.stdout.split()[0] == str(copy / STAGE1), done.stderr


def test_other_contract(python: Run, copy: Path) -> None:
    fake_stage1(copy / STAGE1, 1, "other/7")
    message = import_error(python, copy / "site")
    assert "has ABI 1 and contract other/7; expected ABI 1 and contract invar-cpu-fp32/" in message
    assert "invar build cpu" in message


def test_other_abi(python: Run, copy: Path) -> None:
    fake_stage1(copy / STAGE1, 99, "invar-cpu-fp32/1")
    assert "has ABI 99" in import_error(python, copy / "site")


def test_missing_symbol(python: Run, copy: Path) -> None:
    fake_stage1(copy / STAGE1, 1, "invar-cpu-fp32/1")
    assert "does not export invar_cpu_" in import_error(python, copy / "site")


def test_not_a_library(python: Run, copy: Path) -> None:
    (copy / STAGE1).write_text("not a library\n")
    message = import_error(python, copy / "site")
    assert "is not a usable stage 1 library" in message
    assert str(copy / STAGE1) in message


def test_source_tree_is_no_installation(python: Run, copy: Path) -> None:
    (copy / "site/batch_invariant_ops/lib_ops.so").unlink()
    message = import_error(python, copy / "site")
    assert "lib_ops.so is missing" in message
    assert "invar build cpu" in message


def test_second_copy_is_refused(python: Run, copy: Path) -> None:
    """Loading it would abort the process inside torch."""
    first = GENERATION / "site/batch_invariant_ops/lib_ops.so"
    code = f"""
import torch
torch.ops.load_library({str(first)!r})
try:
    torch.ops.batch_invariant_ops.mm(torch.ones(2, 2), torch.ones(2, 2))
except RuntimeError as error:
    print(error)
import batch_invariant_ops
"""
    done = python(code, site=copy / "site")
    assert done.returncode == 1
    assert "another library has already defined torch.ops.batch_invariant_ops" in done.stderr
    # The first one was loaded without the package, so it has no stage 1.
    assert "no stage 1 library is attached" in done.stdout


def test_import_after_failure_and_reload(python: Run, copy: Path) -> None:
    code = f"""
import importlib, os, sys
os.environ["INVAR_CPU_LIBRARY"] = "/nowhere.so"
try:
    import batch_invariant_ops
except ImportError as error:
    print("refused")
del os.environ["INVAR_CPU_LIBRARY"]
import batch_invariant_ops
for name in [n for n in sys.modules if n.startswith("batch_invariant_ops")]:
    del sys.modules[name]
import batch_invariant_ops as again, torch
with again.enabled():
    print(torch.mm(torch.ones(1, 2), torch.ones(2, 1)).item(), {str(copy)!r} in again.__file__)
"""
    done = python(code, site=copy / "site")
    assert done.stdout.split() == ["refused", "2.0", "True"], done.stderr


def test_unknown_isa_level_is_an_error(python: Run, copy: Path) -> None:
    code = "import torch, batch_invariant_ops as b; print(b.isa()); torch.ops.batch_invariant_ops.mm(torch.ones(2,2), torch.ones(2,2))"
    done = python(code, site=copy / "site", env={"INVAR_CPU_ISA": "quantum"})
    assert done.stdout.strip() == "None"
    assert "INVAR_CPU_ISA" in done.stderr
    done = python(code, site=copy / "site", env={"INVAR_CPU_ISA": "baseline"})
    assert done.stdout.strip() == "baseline", done.stderr


def test_module_runs(python: Run) -> None:
    done = python("import runpy; runpy.run_module('batch_invariant_ops', run_name='__main__')")
    assert done.returncode == 0, done.stderr
    assert "ok   mm" in done.stdout
    assert "batch-dependent product is caught" in done.stdout


def test_enable_is_silent(python: Run) -> None:
    done = python(
        "import torch, batch_invariant_ops as b\n"
        "b.enable()\n"
        "try: torch.mm(torch.ones(2, 3), torch.ones(2, 3))\n"
        "except RuntimeError: pass\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
