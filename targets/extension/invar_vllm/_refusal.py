"""The error that ends a process which cannot be made invariant."""

from __future__ import annotations


class RefusedError(RuntimeError):
    """Something that is not shown to be batch-invariant; the server must not start.

    The message says what was found, what is wanted and what to do.
    """

    def __init__(self, what: str, *, want: str, hint: str) -> None:
        super().__init__(f"invar: {what}; want {want}. {hint}")
