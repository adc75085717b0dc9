"""Puts the built package in front of sys.path, before any test module imports it.

INVAR_TEST_SITE names a generation (site/..., ops/cpu/lib/...). Without it both
stages are built here, into a temporary folder.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))


def _generation() -> Path:
    given = os.environ.get("INVAR_TEST_SITE")
    if given:
        return Path(given)
    import site_builder

    folder = Path(tempfile.mkdtemp(prefix="invar-extension-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return site_builder.build_site(folder)


GENERATION = _generation()
sys.path.insert(0, str(GENERATION / "site"))

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def generation() -> Path:
    """The generation under test."""
    return GENERATION


@pytest.fixture
def python(tmp_path: Path) -> Run:
    """Runs code in a fresh interpreter that sees a generation's site folder."""

    def run(
        code: str,
        *,
        site: Path = GENERATION / "site",
        env: dict[str, str] | None = None,
        interpreter: str = sys.executable,
        arguments: list[str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("INVAR_CPU", "PYTHON"))}
        return subprocess.run(
            [interpreter, "-c", code, *(arguments or [])],
            cwd=tmp_path,
            env={**clean, "PYTHONPATH": str(site), **(env or {})},
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.fixture(autouse=True)
def _settings() -> Iterator[None]:
    """Every test starts and ends with routing off, the default ISA level and two threads."""
    import batch_invariant_ops as bio

    threads = torch.get_num_threads()
    torch.manual_seed(7)
    yield
    torch.set_num_threads(threads)
    bio.select_isa(None)
    assert not bio.is_enabled(), "a test left routing on"


def missing(what: str) -> None:
    """Skips a test that needs something heavy; in CI that is a failure."""
    if os.environ.get("INVAR_CI") == "1":
        pytest.fail(f"{what} is missing and INVAR_CI=1 asks for it")
    pytest.skip(f"needs {what}")
