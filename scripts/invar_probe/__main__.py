"""Reads one request from stdin, writes one answer to stdout.

Started as `python FOLDER/invar_probe`, so that sys.path begins with a folder
that holds nothing else and the current folder is not on it.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

# A folder that is run becomes sys.path[0] itself; the package is found from its parent.
sys.path[0] = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

from invar_probe.channel import Channel  # noqa: E402


def main() -> None:
    """Dispatches on the request's "do"."""
    channel = Channel()
    request: dict[str, Any] = json.load(sys.stdin)
    if request["do"] == "facts":
        from invar_probe import facts

        channel.answer(facts.gather(request))
    elif request["do"] == "measure":
        from invar_probe import measure

        channel.answer(measure.run(request, channel))
    elif request["do"] == "verify":
        from invar_probe import verify

        channel.answer(verify.run(request, channel))
    else:
        raise SystemExit(f"unknown request {request['do']!r}; want facts, measure or verify")


if __name__ == "__main__":
    main()
