"""What is routed in this process, and the file that says so."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from ._hooks import Hooks

VARIABLE = "INVAR_ROUTING_DIR"
SCHEMA = "invar.routing"


class Record:
    """Counts what was routed. Each worker writes it as JSON into INVAR_ROUTING_DIR."""

    def __init__(self, hooks: Hooks, vllm: str, operators: dict[str, str]) -> None:
        self.hooks = hooks
        self._vllm = vllm
        self._operators = operators
        self._linear: Counter[str] = Counter()
        self._modules: Counter[str] = Counter()
        self._path: Path | None = None
        self._worker: dict[str, Any] = {}
        self._steps = self._rows = self._most = 0

    def linear(self, columns: int, inner: int, dtype: torch.dtype) -> None:
        """Notes a packed weight."""
        self._linear[f"{inner}x{columns} {str(dtype).removeprefix('torch.')}"] += 1

    def module(self, kind: str) -> None:
        """Notes a judged module of the model."""
        self._modules[kind] += 1

    def worker(self, worker: Any) -> None:
        """Notes which worker this is; from here on the record is written."""
        import torch

        import batch_invariant_ops

        batch_invariant_ops.enable()  # softmax and what else is left to aten
        config = worker.vllm_config
        self._worker = {
            "rank": int(worker.rank),
            "data_parallel_rank": int(config.parallel_config.data_parallel_rank),
            "model": str(config.model_config.model),
            "dtype": str(config.model_config.dtype).removeprefix("torch."),
            "threads": torch.get_num_threads(),
        }
        folder = os.environ.get(VARIABLE, "")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self._path = Path(folder) / f"routing-{self._worker['rank']}-{os.getpid()}.json"
        self.write()
        print_line(self.line())

    def step(self, rows: int) -> None:
        """Notes one step of the engine: its query rows, each a request of its own."""
        self._steps += 1
        self._rows += rows
        self._most = max(self._most, rows)
        # At 1, 2, 4, 8, ... and then every 256: a reader sees fresh counts, the step no file.
        if self._steps & (self._steps - 1) == 0 or self._steps % 256 == 0:
            self.write()

    def line(self) -> str:
        """What is routed, in one line."""
        m = self._modules
        return (
            f"invar: batch-invariant operators active: {m['linear']} linear layers "
            f"packed (lm_head included), {m['norm']} norms, {m['attention']} attention layers by "
            f"rows without KV split, softmax; {self._operators['contract']}, "
            f"{self._operators['isa']}, vLLM {self._vllm}, pid {os.getpid()}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        import torch

        import batch_invariant_ops

        return {
            "schema": SCHEMA,
            "version": 1,
            "pid": os.getpid(),
            "worker": self._worker,
            "vllm": self._vllm,
            "torch": str(torch.__version__),
            "python": ".".join(map(str, sys.version_info[:3])),
            "hooks": f"{self.hooks.vllm}-{self.hooks.platform}",
            "operators": self._operators,
            "environment": {v.name: os.environ.get(v.name, "") for v in self.hooks.environment},
            "cache_root": os.environ.get("VLLM_CACHE_ROOT", ""),
            "patched": [f"{h.module}.{h.attribute}" for h in self.hooks.hooks],
            "linear": dict(self._linear),
            "modules": dict(self._modules),
            "routes": batch_invariant_ops.report().as_dict()["routes"],
            "steps": self._steps,
            "rows": self._rows,
            "most_rows": self._most,
        }

    def write(self) -> None:
        """Replaces the file in one step, so that a reader never sees half of it."""
        if self._path is None:
            return
        new = self._path.with_suffix(".new")
        new.write_text(json.dumps(self.as_dict(), indent=1) + "\n", encoding="utf-8")
        new.replace(self._path)


def print_line(text: str) -> None:
    """Says text through vLLM's logger, which its own configuration shows."""
    import logging

    logging.getLogger("vllm.invar").info("%s", text)
