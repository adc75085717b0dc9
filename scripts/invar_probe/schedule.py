"""The schedule as it arrives from the Go side: what to call, in which contexts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from .cases import Spec

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


@dataclass
class Sweep:
    """A family of contexts: the product of its lists, at each number of rows."""

    name: str
    rows: list[int]
    orders: list[str] = field(default_factory=lambda: ["in order"])
    layouts: list[str] = field(default_factory=lambda: ["plain"])
    fills: list[str] = field(default_factory=list)
    positions: list[str] = field(default_factory=list)
    shifts: int = 1
    repeats: int = 1
    routed: bool = False


@dataclass
class Setting:
    """Threads and instruction set of the process, and what is swept under them."""

    isa: str
    threads: int
    sweeps: list[str]


@dataclass
class Schedule:
    """Everything that one measurement does."""

    seed: int
    dtypes: list[str]
    operators: list[Spec]
    routed: list[Spec]
    sweeps: dict[str, Sweep]
    settings: list[Setting]
    control: Spec | None
    observe: Spec | None

    def most_rows(self) -> int:
        """The largest batch of all sweeps."""
        return max(r for s in self.sweeps.values() for r in s.rows)


def parse(value: dict[str, Any]) -> Schedule:
    """Reads the JSON form; a missing or unknown key is a TypeError or KeyError."""

    def spec(v: dict[str, Any]) -> Spec:
        return Spec(**{**v, "needs": tuple(v.get("needs", ()))})

    return Schedule(
        seed=int(value["seed"]),
        dtypes=[str(d) for d in value["dtypes"]],
        operators=[spec(o) for o in value["operators"]],
        routed=[spec(o) for o in value["routed"] or []],
        sweeps={s["name"]: Sweep(**s) for s in value["sweeps"]},
        settings=[Setting(**s) for s in value["settings"]],
        control=spec(value["control"]) if value.get("control") else None,
        observe=spec(value["observe"]) if value.get("observe") else None,
    )
