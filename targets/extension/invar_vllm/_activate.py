"""Checks everything, then patches vLLM as a whole."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from . import _hooks
from ._patches import PATCHES
from ._record import Record
from ._refusal import RefusedError

_active: Record | None = None


def activate() -> Record:
    """Makes vLLM in this process use invar's operators, or raises."""
    global _active
    if _active is not None:
        return _active
    import vllm
    from vllm.platforms import current_platform

    version = str(vllm.__version__)
    platform = str(current_platform.device_type)
    if getattr(current_platform, "is_zen_cpu", lambda: False)():
        platform = "zen"
    hooks = _hooks.find(version, platform)
    for variable in hooks.refused:
        if os.environ.get(variable.name) == variable.value:
            raise RefusedError(
                f"{variable.name}={variable.value} beside INVAR_BATCH_INVARIANT=1",
                want=f"{variable.name} unset",
                hint=variable.why,
            )
    operators = _operators(hooks)
    found = _hooks.resolve(hooks)
    for variable in hooks.environment:
        os.environ[variable.name] = variable.value
    _own_cache(operators["digest"])
    record = Record(hooks, version, operators)
    for hook, owner, name, function in found:
        setattr(owner, name, PATCHES[hook.name](function, record))
    _active = record
    return record


def _operators(hooks: _hooks.Hooks) -> dict[str, str]:
    """What the operators are; ImportError when a stage is missing or does not fit."""
    import batch_invariant_ops as ops

    isa = ops.isa()
    if isa is None:
        raise RefusedError(
            f"INVAR_CPU_ISA={os.environ.get('INVAR_CPU_ISA')} is not a level of this machine",
            want="a level that `invar probe` names",
            hint="Unset it.",
        )
    if ops.contract() != hooks.contract:
        raise RefusedError(
            f"the operators keep the contract {ops.contract()}",
            want=hooks.contract,
            hint="Plugin and operators come from one build: run `invar build cpu` again.",
        )
    return {
        "version": ops.__version__,
        "stage1": ops.stage1_version(),
        "library": ops.library_path(),
        "contract": ops.contract(),
        "isa": isa,
        "digest": _digest(Path(ops.__file__).resolve().parent, Path(ops.library_path())),
    }


def _digest(package: Path, stage1: Path) -> str:
    """One digest of everything that decides what a compiled graph calls."""
    own = Path(__file__).resolve().parent
    files = [stage1, *sorted(package.glob("*.so")), *sorted(package.glob("*.py"))]
    files += [*sorted(own.glob("*.py")), *sorted(own.glob("hooks/*.json"))]
    total = hashlib.sha256()
    for file in files:
        total.update(f"{file.name}\n".encode())
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def _own_cache(digest: str) -> None:
    """Gives the compiled graphs a root of their own.

    vLLM's cache key does not hold what plugins changed, so a graph with other
    operators in it could be taken for this one's. Child processes inherit the
    variable and must not go one folder deeper.
    """
    root = Path(os.environ.get("VLLM_CACHE_ROOT") or Path.home() / ".cache" / "vllm").expanduser()
    name = f"invar-{digest[:12]}"
    if root.name != name:
        os.environ["VLLM_CACHE_ROOT"] = str(root / name)
