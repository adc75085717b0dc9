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


ATTEMPTS = """
import os, sys
for library in sys.argv[1:]:
    os.environ["INVAR_CPU_LIBRARY"] = library
    try:
        import batch_invariant_ops
        print("imported")
    except ImportError as error:
        print(error)
    for name in [n for n in sys.modules if n.startswith("batch_invariant_ops")]:
        del sys.modules[name]
"""


def import_error(python: Run, site: Path) -> str:
    done = python("import batch_invariant_ops", site=site)
    assert done.returncode == 1, done.stdout
    assert "ImportError" in done.stderr, done.stderr
    return done.stderr.strip().splitlines()[-1]


def test_default_place_through_a_moving_link(python: Run, copy: Path) -> None:
    """`current` may be switched while a process imports: it stays in its generation."""
    current = copy.parent / "current"
    current.symlink_to(copy)
    done = python(PRINT, site=current / "site")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == str(copy / STAGE1)


def test_without_stage1_stage2_fails(python: Run, copy: Path) -> None:
    (copy / STAGE1).unlink()
    message = import_error(python, copy / "site")
    assert f"{copy / STAGE1} (beside the installed package) does not exist" in message
    assert "invar build cpu" in message


def test_variable_names_a_library_that_does_not_fit(python: Run, copy: Path) -> None:
    """Each attempt says what was looked at, and the right library is taken afterwards."""
    text, moved = copy / "text.so", copy / "elsewhere.so"
    text.write_text("not a library\n")
    (copy / STAGE1).rename(moved)
    abi, contract, hollow = copy / "abi.so", copy / "contract.so", copy / "hollow.so"
    fake_stage1(abi, 99, "invar-cpu-fp32/1")
    fake_stage1(contract, 1, "other/7")
    fake_stage1(hollow, 1, "invar-cpu-fp32/1")
    wanted: dict[str, str] = {
        "/nowhere/lib.so": "/nowhere/lib.so (named by INVAR_CPU_LIBRARY) does not exist",
        "relative.so": "must be an absolute path, got 'relative.so'",
        str(text): f"{text} (named by INVAR_CPU_LIBRARY) is not a usable stage 1 library",
        str(abi): "has ABI 99 and contract invar-cpu-fp32/1; expected ABI 1",
        str(contract): "has ABI 1 and contract other/7; expected ABI 1",
        str(hollow): f"{hollow} does not export invar_cpu_",
        str(moved): "imported",
    }
    done = python(ATTEMPTS, site=copy / "site", arguments=list(wanted))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(wanted), done.stdout
    for got, text_wanted in zip(lines, wanted.values(), strict=True):
        assert text_wanted in got
        assert got == "imported" or "invar build cpu" in got or "absolute path" in got


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


def test_reload(python: Run, copy: Path) -> None:
    code = """
import sys, torch
import batch_invariant_ops
for name in [n for n in sys.modules if n.startswith("batch_invariant_ops")]:
    del sys.modules[name]
import batch_invariant_ops as again
with again.enabled():
    print(torch.mm(torch.ones(1, 2), torch.ones(2, 1)).item())
"""
    done = python(code, site=copy / "site")
    assert done.stdout.split() == ["2.0"], done.stderr


def test_unknown_isa_level_is_an_error(python: Run, copy: Path) -> None:
    code = """
import torch, batch_invariant_ops as b
print(b.isa())
torch.ops.batch_invariant_ops.mm(torch.ones(2, 2), torch.ones(2, 2))
"""
    done = python(code, site=copy / "site", env={"INVAR_CPU_ISA": "quantum"})
    assert done.stdout.strip() == "None"
    assert "INVAR_CPU_ISA" in done.stderr


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
