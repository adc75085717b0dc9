"""Puts answers of vllm.LLM into the shape of the completions API."""

from __future__ import annotations

from typing import Any


def choice(answer: Any) -> dict[str, Any]:
    """One answer with its ids and exact logprobs."""
    got = answer.outputs[0]
    ids = list(got.token_ids)
    out: dict[str, Any] = {
        "text": got.text,
        "token_ids": ids,
        "prompt_token_ids": list(answer.prompt_token_ids or []),
        "finish_reason": got.finish_reason,
    }
    if got.logprobs is not None:
        out["logprobs"] = {
            "tokens": [_name(i) for i in ids],
            "token_logprobs": [at[i].logprob for at, i in zip(got.logprobs, ids, strict=True)],
            "top_logprobs": [{_name(k): v.logprob for k, v in at.items()} for at in got.logprobs],
        }
    if answer.prompt_logprobs is not None:
        out["prompt_logprobs"] = [
            None if at is None else {str(k): {"logprob": v.logprob} for k, v in at.items()}
            for at in answer.prompt_logprobs
        ]
    return out


def _name(token: int) -> str:
    return f"token_id:{token}"
