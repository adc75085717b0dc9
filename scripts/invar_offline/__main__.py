"""Reads one request from stdin and answers prompts through vllm.LLM.

Started as `python FOLDER/invar_offline ANSWERS`. Each line of ANSWERS is one
JSON object: the facts of the engine, an answer in the shape of the completions
API, or the end of a run with its counters. Lines are written as answers come,
so that what was answered before a crash is not lost.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, TextIO

# A folder that is run becomes sys.path[0] itself; the package is found from its parent.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from invar_offline.answers import choice  # noqa: E402
from invar_offline.counters import counters  # noqa: E402


def main() -> None:
    """Answers everything that stdin asks for."""
    request: dict[str, Any] = json.load(sys.stdin)
    from vllm import LLM, __version__  # type: ignore[import-not-found]

    # What is asked for wins; without statistics nothing shows what shared a step.
    arguments = {"max_logprobs": 20, **request["arguments"], "disable_log_stats": False}
    engine = LLM(model=request["model"], **arguments)
    with Path(sys.argv[1]).open("w", encoding="utf-8") as out:
        _line(out, {"version": __version__})
        for run in request["runs"]:
            _run(engine, run, out)


def _line(out: TextIO, what: dict[str, Any]) -> None:
    out.write(json.dumps(what) + "\n")
    out.flush()


def _run(engine: Any, run: dict[str, Any], out: TextIO) -> None:
    """Each group of prompts is one call of generate."""
    for group in run["fill"]:
        _generate(engine, run, group)
    before = counters(engine)
    for group in run["groups"]:
        for prompt, answer in zip(group, _generate(engine, run, group), strict=True):
            _line(out, {"run": run["run"], "i": prompt["i"], "choice": choice(answer)})
    after = counters(engine)
    _line(out, {"run": run["run"], "counters": {k: after[k] - before[k] for k in after}})


def _generate(engine: Any, run: dict[str, Any], group: list[dict[str, Any]]) -> list[Any]:
    from vllm import SamplingParams

    asked = dict(run["sampling"])
    params = SamplingParams(**asked)
    prompts: list[Any] = [{"prompt": p["text"], "cache_salt": p["salt"]} for p in group]
    answers: list[Any] = engine.generate(prompts, params, use_tqdm=False)
    return answers


if __name__ == "__main__":
    main()
