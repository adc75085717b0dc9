"""The build backend of this folder: it builds nothing by itself.

A wheel of batch_invariant_ops is worth something only with its compiled
extension and beside the stage 1 it was built with; `invar build cpu` makes and
installs both. `pip install .` says so instead of giving a wheel without them.
"""

from __future__ import annotations

from typing import Any, NoReturn

_MESSAGE = (
    "batch_invariant_ops is not built by pip: it needs its compiled extension and the "
    "kernels of stage 1. Run `invar build cpu`, which builds and installs both; the wheel "
    "that it makes can be installed like any other."
)


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise SystemExit(_MESSAGE)


build_wheel = build_sdist = build_editable = _refuse
prepare_metadata_for_build_wheel = prepare_metadata_for_build_editable = _refuse
