"""Is every part of a loaded model one that is shown to be invariant?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch

from ._patches import MARK
from ._refusal import RefusedError

if TYPE_CHECKING:
    from ._hooks import Hooks
    from ._record import Record


def configuration(config: Any, hooks: Hooks) -> None:
    """Refuses what the server was asked for and is not shown."""
    for limit in hooks.config:
        limit.check(config, "the configuration")


def audit(model: torch.nn.Module, record: Record) -> None:
    """Judges every module of the model; one that is not known is refused."""
    classes = [(m.resolve(), m.kind) for m in record.hooks.modules]
    for name, module, kind in _walk(model, "", classes):
        record.module(kind)
        if kind == "linear":
            _packed(name, module)
        elif kind == "attention":
            for limit in record.hooks.attention:
                limit.check(module.impl, f"attention {name}")
        elif kind == "norm":
            for limit in record.hooks.norm:
                limit.check(module, f"norm {name}")


def _packed(name: str, module: Any) -> None:
    if not getattr(getattr(module, "cpu_linear", None), MARK, False):
        raise RefusedError(
            f"the linear layer {name} ({type(module).__name__}) was not packed",
            want="an unquantized layer",
            hint="Quantized linear layers have no invariant kernel yet.",
        )


def _walk(
    module: torch.nn.Module, name: str, classes: list[tuple[type, str]]
) -> Iterator[tuple[str, Any, str]]:
    # The class nearest in the inheritance decides.
    by_class = dict(classes)
    kind = next((by_class[c] for c in type(module).__mro__ if c in by_class), "")
    if kind and kind != "container":
        yield name, module, kind
        return
    children = list(module.named_children())
    own = [n for n, _ in module.named_parameters(recurse=False)]
    if not kind and (not children or own):
        raise RefusedError(
            f"the module {name or 'of the model'} of class "
            f"{type(module).__module__}.{type(module).__name__} is not known",
            want="modules that are shown to be invariant",
            hint="Unset INVAR_BATCH_INVARIANT to serve this model as it is.",
        )
    for child_name, child in children:
        yield from _walk(child, f"{name}.{child_name}".lstrip("."), classes)
