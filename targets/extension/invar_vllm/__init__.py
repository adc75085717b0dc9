"""The plugin that makes a vLLM server on the CPU batch-invariant.

vLLM finds it through the entry point group vllm.general_plugins and calls
register() in every process. Importing this module must not fail: vLLM logs an
exception of an import and goes on without the plugin, so a server that was
asked to be invariant would run, and not be. Everything that can fail is in
register(), whose exceptions end the process.
"""

from __future__ import annotations

__all__ = ["register"]

VARIABLE = "INVAR_BATCH_INVARIANT"


def register() -> None:
    """Routes vLLM to invar's operators when INVAR_BATCH_INVARIANT is 1.

    Unset, empty and 0 leave vLLM as it is. It may be called again.
    """
    import os

    asked = os.environ.get(VARIABLE, "")
    if asked in {"", "0"}:
        return
    if asked != "1":
        raise RuntimeError(f"invar: {VARIABLE}={asked!r}: want 1, or 0 to leave vLLM as it is")
    from ._activate import activate

    activate()
