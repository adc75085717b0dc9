"""What differs from one release of vLLM to the next, read strictly from hooks/*.json."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from ._refusal import RefusedError

SCHEMA = 1
FOLDER = Path(__file__).resolve().parent / "hooks"


@dataclass(frozen=True)
class Variable:
    """An environment variable that is set, or whose value is refused."""

    name: str
    value: str
    why: str


@dataclass(frozen=True)
class Hook:
    """A function of vLLM that is wrapped or replaced, with the digest of its source."""

    name: str  # of the wrapper in _patches.py
    module: str
    attribute: str  # "function" or "Class.method"
    sha256: str

    def owner(self) -> tuple[Any, str, Any]:
        """Where the function is kept, under which name, and the function."""
        owner: Any = importlib.import_module(self.module)
        *path, last = self.attribute.split(".")
        for part in path:
            owner = getattr(owner, part)
        # Not getattr: a method that a class inherits is not its own.
        return owner, last, vars(owner)[last]


@dataclass(frozen=True)
class Limit:
    """An attribute whose value must be one of those that are shown to be exact."""

    path: str  # "parallel_config.tensor_parallel_size"
    allowed: tuple[Any, ...]
    why: str

    def check(self, of: Any, what: str) -> None:
        """Raises when the value at path is another."""
        value: Any = of
        for part in self.path.split("."):
            value = getattr(value, part, None)
        # Enumerations and dtypes are compared by their text.
        if value in self.allowed or str(getattr(value, "value", value)) in map(str, self.allowed):
            return
        want = " or ".join(repr(a) for a in self.allowed)
        raise RefusedError(f"{what}: {self.path} is {value!r}", want=want, hint=self.why)


@dataclass(frozen=True)
class Module:
    """A class of a model's modules and how it is judged."""

    name: str  # "module:Class"; sub-classes count
    kind: str

    def resolve(self) -> type:
        """The class itself."""
        module, _, name = self.name.partition(":")
        found: type = getattr(importlib.import_module(module), name)
        return found


KINDS = ("linear", "embedding", "norm", "attention", "elementwise", "container")


@dataclass(frozen=True)
class Hooks:
    """One file of hooks."""

    schema: int
    vllm: str
    platform: str
    contract: str
    sources: tuple[str, ...]
    environment: tuple[Variable, ...]
    refused: tuple[Variable, ...]
    hooks: tuple[Hook, ...]
    config: tuple[Limit, ...]
    attention: tuple[Limit, ...]
    norm: tuple[Limit, ...]
    modules: tuple[Module, ...]


T = TypeVar("T")


def _record(kind: type[T], value: Any, where: str) -> T:
    """A dataclass from a JSON object that has exactly its fields."""
    names = {f.name for f in fields(kind)}  # type: ignore[arg-type]
    if not isinstance(value, dict) or set(value) != names:
        got = sorted(value) if isinstance(value, dict) else type(value).__name__
        raise ValueError(f"{where}: want an object with {sorted(names)}, got {got}")
    made = {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
    for f in fields(kind):  # type: ignore[arg-type]
        wanted = str(f.type)
        if wanted == "str" and not isinstance(made[f.name], str):
            raise ValueError(f"{where}.{f.name}: want text, got {made[f.name]!r}")
        if wanted == "int" and type(made[f.name]) is not int:
            raise ValueError(f"{where}.{f.name}: want a whole number, got {made[f.name]!r}")
        if wanted.startswith("tuple") and not isinstance(made[f.name], tuple):
            raise ValueError(f"{where}.{f.name}: want a list, got {made[f.name]!r}")
    return kind(**made)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError(f"a key stands twice among {[k for k, _ in pairs]}")
    return out


_PARTS: Mapping[str, type] = {
    "environment": Variable,
    "refused": Variable,
    "hooks": Hook,
    "config": Limit,
    "attention": Limit,
    "norm": Limit,
    "modules": Module,
}


def parse(text: str, where: str) -> Hooks:
    """Hooks from JSON text; anything unexpected is an error that names the place."""
    value = json.loads(text, object_pairs_hook=_once)
    if not isinstance(value, dict):
        raise ValueError(f"{where}: want an object")
    for name, kind in _PARTS.items():
        if not isinstance(value.get(name), list):
            raise ValueError(f"{where}.{name}: want a list")
        value[name] = [_record(kind, v, f"{where}.{name}[{i}]") for i, v in enumerate(value[name])]
    hooks = _record(Hooks, value, where)
    if hooks.schema != SCHEMA:
        raise ValueError(f"{where}: schema {hooks.schema}; this plugin reads {SCHEMA}")
    for m in hooks.modules:
        if m.kind not in KINDS:
            raise ValueError(f"{where}: kind {m.kind!r}; want one of {KINDS}")
    return hooks


def known() -> list[str]:
    """The releases that there are hooks for."""
    return sorted(p.name.removesuffix(".json") for p in FOLDER.glob("*.json"))


def find(version: str, platform: str) -> Hooks:
    """The hooks of one release on one platform, or a refusal."""
    release = version.partition("+")[0]
    path = FOLDER / f"{release}-{platform}.json"
    if not path.exists():
        raise RefusedError(
            f"vLLM {version} on the platform {platform} is not known",
            want="one of " + ", ".join(known()),
            hint="Unset INVAR_BATCH_INVARIANT to run it as it is, or install a known release.",
        )
    return parse(path.read_text(encoding="utf-8"), path.name)


def digest(function: Any) -> str:
    """The digest of a function's source text."""
    return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()


def resolve(hooks: Hooks) -> list[tuple[Hook, Any, str, Any]]:
    """All functions to patch, or a refusal: a release is patched whole or not at all."""
    found = []
    for hook in hooks.hooks:
        try:
            owner, name, function = hook.owner()
            got = digest(inspect.unwrap(function))
        except (ImportError, AttributeError, KeyError, OSError, TypeError) as error:
            got, owner, name, function = f"{type(error).__name__}: {error}", None, "", None
        if got != hook.sha256:
            raise RefusedError(
                f"{hook.module}.{hook.attribute} is not that of vLLM {hooks.vllm} ({got})",
                want=f"source with sha256 {hook.sha256}",
                hint="This vLLM was changed; nothing was patched.",
            )
        found.append((hook, owner, name, function))
    return found
