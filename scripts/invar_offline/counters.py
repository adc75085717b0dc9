"""Reads the counters of an engine that runs in this process."""

from __future__ import annotations

from typing import Any

STEPS = "vllm:iteration_tokens_total"
SUMS = {
    "generated": "vllm:generation_tokens",
    "prompted": "vllm:prompt_tokens",
    "finished": "vllm:request_success",
    "preemptions": "vllm:num_preemptions",
    "cache_hits": "vllm:prefix_cache_hits",
}


def counters(engine: Any) -> dict[str, float]:
    """Totals since the start, by the words that invar uses for them."""
    out = dict.fromkeys([*SUMS, "steps", "step_tokens", "over_256", "over_512"], 0.0)
    for metric in engine.get_metrics():
        for word, name in SUMS.items():
            if metric.name in (name, name + "_total"):
                out[word] += float(metric.value)
        if metric.name == STEPS:
            out["steps"] += metric.count
            out["step_tokens"] += metric.sum
            # Cumulative counts by upper bound, the bounds as text.
            below = {float(bound): n for bound, n in metric.buckets.items()}
            for bound, word in ((256.0, "over_256"), (512.0, "over_512")):
                out[word] += metric.count - below.get(bound, metric.count)
    return out
