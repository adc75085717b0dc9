"""Levels 2 to 5: what an import does, which operators are there, what is mapped."""

from __future__ import annotations

import importlib
import os
import sys
import time
import traceback
import warnings
from typing import Any

from . import package


def gather(request: dict[str, Any]) -> dict[str, Any]:
    """Answers everything that needs no operator to run."""
    out: dict[str, Any] = {"python": _python(), "import": _import(request["module"])}
    if out["import"]["ok"]:
        out["torch"] = _torch()
        out["operators"] = [_operator(request["namespace"], o) for o in request["operators"]]
        out["registered"] = _registered(request["namespace"])
        out["mapped"] = _mapped(request["mapped"])
        if not request.get("npu"):
            out["package"] = package.describe(request["module"])
        if request.get("npu"):
            from . import npu

            out["npu"] = npu.describe(request["npu"])
        if request.get("cuda"):
            out["cuda"] = package.describe_cuda(request["cuda"])
    return out


def _python() -> dict[str, Any]:
    return {
        "executable": sys.executable,
        "version": ".".join(map(str, sys.version_info[:3])),
        "prefix": sys.prefix,
        "path": list(sys.path),
    }


def _import(module: str) -> dict[str, Any]:
    began = time.perf_counter()
    out: dict[str, Any] = {"ok": False, "warnings": []}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = importlib.import_module(module)
            out["ok"] = True
            out["file"] = getattr(found, "__file__", None) or ""
            out["path"] = [str(p) for p in getattr(found, "__path__", [])]
            out["version"] = str(getattr(found, "__version__", ""))
        except BaseException as e:  # SystemExit of a plugin is a failed import too
            out["error"] = _chain(e)
            out["traceback"] = traceback.format_exc()
    out["warnings"] = [
        {
            "category": w.category.__name__,
            "text": str(w.message),
            "place": f"{w.filename}:{w.lineno}",
        }
        for w in caught
    ]
    out["seconds"] = round(time.perf_counter() - began, 3)
    return out


def _chain(e: BaseException) -> list[str]:
    """The error and what caused it, outermost first, exactly as Python says them."""
    out: list[str] = []
    at: BaseException | None = e
    while at is not None and len(out) < 8:
        out.append("".join(traceback.format_exception_only(type(at), at)).strip())
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return out


def _torch() -> dict[str, Any]:
    import torch

    return {
        "version": str(torch.__version__),
        "file": torch.__file__,
        "threads": torch.get_num_threads(),
    }


def _operator(namespace: str, wanted: dict[str, Any]) -> dict[str, Any]:
    """Resolves one operator by access: torch.ops is lazy, so dir() tells nothing.

    A name may be of one overload: "sum.last".
    """
    import torch

    name = wanted["name"]
    out: dict[str, Any] = {"name": name, "found": False, "schemas": [], "want": "", "keys": {}}
    if wanted.get("schema"):
        try:
            out["want"] = str(torch._C.parse_schema(f"{namespace}::{wanted['schema']}"))
        except RuntimeError as e:
            out["want_error"] = str(e).splitlines()[0]
    try:
        packet = getattr(getattr(torch.ops, namespace), name.partition(".")[0])
    except AttributeError as e:
        out["error"] = str(e).splitlines()[0]
        return out
    out["found"] = True
    for overload in packet.overloads():
        schema = getattr(packet, overload)._schema
        out["schemas"].append(str(schema))
    qualified = f"{namespace}::{name}"
    for key in wanted.get("keys", []):
        try:
            out["keys"][key] = bool(torch._C._dispatch_has_kernel_for_dispatch_key(qualified, key))
        except RuntimeError as e:
            out["keys"][key] = False
            out["key_error"] = str(e).splitlines()[0]
    return out


def _registered(namespace: str) -> list[str]:
    import torch

    prefix = namespace + "::"
    names: list[str] = torch._C._dispatch_get_all_op_names()
    return sorted(n.removeprefix(prefix) for n in names if n.startswith(prefix))


def _mapped(stems: list[str]) -> list[dict[str, Any]]:
    """Files in this process whose base name starts with one of stems.

    /proc/self/maps has the path that the kernel knows: links are resolved, and a
    file that was deleted or replaced since is marked.
    """
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            fields = line.rstrip("\n").split(None, 5)
            if len(fields) < 6 or not fields[5].startswith("/"):
                continue
            path = fields[5].removesuffix(" (deleted)")
            if not os.path.basename(path).startswith(tuple(stems)):
                continue
            seen[fields[3], fields[4]] = {
                "path": path,
                "device": fields[3],
                "inode": int(fields[4]),
                "deleted": fields[5].endswith(" (deleted)"),
            }
    return list(seen.values())
