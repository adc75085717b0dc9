"""The line to the Go side: one JSON object on stdout, everything else on stderr."""

from __future__ import annotations

import json
import os
import sys
from typing import IO, Any

# Lines on stderr that start with this are progress for a bar, not log.
PROGRESS = "invar-probe-progress "


class Channel:
    """Keeps stdout for the answer.

    Plugins, sitecustomize and C libraries print on file descriptor 1 as they
    like. It is pointed at stderr before anything else is imported, so that what
    they say lands in the log and the answer stays alone on stdout.
    """

    def __init__(self) -> None:
        sys.stdout.flush()
        self._answer: IO[str] = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)

    def progress(self, done: int, total: int, text: str) -> None:
        """Says how far the work is."""
        line = json.dumps({"done": done, "total": total, "text": text})
        print(PROGRESS + line, file=sys.stderr, flush=True)

    def answer(self, value: dict[str, Any]) -> None:
        """Writes the answer; called once, last."""
        # A leading newline ends whatever was printed before the constructor ran.
        self._answer.write("\n" + json.dumps(value, allow_nan=False) + "\n")
        self._answer.flush()
