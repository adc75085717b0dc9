"""A stand-in for vllm.LLM: answers are a hash of the prompt.

With FAKE_BATCH=1 the logprobs depend on how many prompts one call holds.
"""

from __future__ import annotations

import hashlib
import os
import struct
from dataclasses import dataclass, field
from typing import Any

__version__ = "0.0+fake"


@dataclass
class Logprob:
    """What vLLM tells of a candidate."""

    logprob: float
    rank: int = 1


class SamplingParams:
    """Keeps what it is given."""

    def __init__(self, **asked: Any) -> None:
        self.asked = asked


@dataclass
class Output:
    """One completion."""

    text: str
    token_ids: list[int]
    logprobs: list[dict[int, Logprob]]
    finish_reason: str = "length"


@dataclass
class Answer:
    """What generate returns for a prompt."""

    outputs: list[Output]
    prompt_token_ids: list[int]
    prompt_logprobs: list[dict[int, Logprob] | None] | None = None


@dataclass
class Metric:
    """A counter, or the histogram of steps."""

    name: str
    value: float = 0.0
    count: float = 0.0
    sum: float = 0.0
    buckets: dict[str, float] = field(default_factory=dict)


def _float(v: float) -> float:
    widened: float = struct.unpack("f", struct.pack("f", v))[0]
    return widened


class LLM:
    """Answers prompts; dies at the call that FAKE_DIES names."""

    def __init__(self, **arguments: Any) -> None:
        if arguments.get("refuse"):
            raise ValueError("this model cannot be loaded")
        self.calls = 0
        self.generated = self.finished = self.steps = self.tokens = 0.0

    def generate(self, prompts: list[Any], params: SamplingParams, use_tqdm: bool) -> list[Answer]:
        self.calls += 1
        if self.calls == int(os.environ.get("FAKE_DIES", "0")):
            os._exit(1)
        n = params.asked["max_tokens"]
        self.steps += n
        self.generated += n * len(prompts)
        self.finished += len(prompts)
        self.tokens += n * len(prompts)
        return [self._answer(p["prompt"], n, len(prompts), params) for p in prompts]

    def _answer(self, prompt: str, n: int, batch: int, params: SamplingParams) -> Answer:
        ids, logprobs = [], []
        moved = 1e-6 * batch if os.environ.get("FAKE_BATCH") == "1" else 0.0
        for i in range(n):
            seed = hashlib.sha256(f"{prompt}{i}".encode()).digest()
            top = {
                int.from_bytes(seed[2 * k : 2 * k + 2], "big"): Logprob(
                    _float(-0.5 - k - seed[k] / 300 - moved)
                )
                for k in range(5)
            }
            ids.append(next(iter(top)))
            logprobs.append(top)
        scored: list[dict[int, Logprob] | None] | None = None
        if "prompt_logprobs" in params.asked:
            scored = [None, dict(logprobs[0])]
        return Answer([Output("x", ids, logprobs)], [1, 2], scored)

    def get_metrics(self) -> list[Metric]:
        below = {"256.0": self.steps, "512.0": self.steps}
        return [
            Metric("vllm:generation_tokens", self.generated),
            Metric("vllm:request_success", self.finished),
            Metric("vllm:iteration_tokens_total", 0.0, self.steps, self.tokens, below),
        ]
