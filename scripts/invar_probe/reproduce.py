"""Writes a difference down as a Python file that runs alone.

The file makes its own data, calls the operator twice and compares bits. Before
it is given out its recipe was tried here, with the smallest sizes that still
differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .cases import Case, Spec
from .locate import Locator

# What is needed beside x, and the call, of each family that can be written down.
CALLS: dict[str, tuple[str, str]] = {
    "product": ("w = values(K, N)", "op(x, w)"),
    "broadcast": ("w = values(K, N)", "op(x.unsqueeze(1), w).squeeze(1)"),
    "affine": ("w = values(K, N)\nc = values(N)", "op(c, x, w, beta=0.5, alpha=1.5)"),
    "linear": ("w = values(N, K)\nb = values(N)", "op(x, w, b)"),
    "vector": ("w = values(K)", "op(x, w).unsqueeze(1)"),
    "reduce": ("", "op(x, [-1]).unsqueeze(1)"),
    "reduce_first": ("", "op(x.t().contiguous(), [0]).unsqueeze(1)"),
    "softmax": ("", "op(x, -1)"),
    "softmax_first": ("", "op(x.t().contiguous(), 0).t()"),
    "norm": ("w = values(K)", "op(x, [K], w, 1e-6)"),
    "add_norm": ("w = values(K)\nr = values(M, K)", "op(x, r[: len(x)], [K], w, 1e-6)[0]"),
    "rows": ("", "op(x)"),
}

TEMPLATE = '''"""{title}

Run it alone: it exits with 1 when rows of the same input have other bits in a
batch of {few} than in one of {many}, and with 0 when they are the same.
"""

import sys

import torch
{imports}

M, FEW, K, N = {many}, {few}, {size}, {columns}
DTYPE = torch.{dtype}
torch.set_num_threads({threads})
gen = torch.Generator().manual_seed({seed})


def values(*shape):
    """Normal numbers with exponents far apart, so that the order of a sum shows."""
    far = torch.exp2(torch.randint(-{reach}, {reach} + 1, shape, generator=gen).float())
    return (torch.randn(shape, generator=gen) * far).to(DTYPE)


op = {expression}
x = values(M, K)
{setup}


def call(x):
    return {call}


INTEGER = {{2: torch.int16, 4: torch.int32, 8: torch.int64}}


def bits(y):
    y = y.contiguous()
    return y.view(INTEGER[y.element_size()]).reshape(len(y), -1)


whole, part = bits(call(x))[:FEW], bits(call(x[:FEW]))
differ = (whole != part).any(dim=1)
print(f"{{int(differ.sum())}} of {{FEW}} rows differ between batches of {{FEW}} and {{M}}")
if differ.any():
    row = int(differ.nonzero()[0])
    at = int((whole[row] != part[row]).nonzero()[0])
    width = {width}
    one, two = (int(t[row, at]) & (1 << 4 * width) - 1 for t in (part, whole))
    print(f"row {{row}}, element {{at}}: {{one:0{{width}}x}} and {{two:0{{width}}x}}")
sys.exit(int(differ.any()))
'''

_REACH = {torch.float32: 12, torch.bfloat16: 6, torch.float16: 2}


def make(case: Case, result: dict[str, Any], seed: int, locate: Locator) -> dict[str, Any]:
    """The script, or the reason why there is none."""
    spec = case.spec
    if spec.family not in CALLS:
        return {"reason": f"no recipe for the family {spec.family}"}
    sizes = [a for a in result["axes"] if a["sweep"] == "sizes"]
    if not sizes:
        return {"reason": "it differs, but not by the number of rows alone"}
    axis = sizes[0]
    torch.set_num_threads(axis["threads"])
    found = _smallest(case, axis["batches"], seed, locate)
    if found is None:
        return {"reason": "ordinary data of the same shapes do not differ"}
    text = _text(spec, case.dtype, found, seed, axis["threads"], locate)
    return {"script": text, **found}


def _smallest(case: Case, batches: list[int], seed: int, locate: Locator) -> dict[str, int] | None:
    """The smallest batches, then the shortest reduction and the fewest columns that differ."""
    most = case.pool.shape[0]
    op = locate(case.spec.operator)
    for few in batches:
        size, columns = case.spec.size, case.spec.columns
        larger = (m for m in sorted(_candidates(most)) if few < m <= most)
        many = next((m for m in larger if _differs(op, case, seed, few, m, size, columns)), 0)
        if not many:
            continue
        while size >= 16 and _differs(op, case, seed, few, many, size // 2, columns):
            size //= 2
        while columns >= 2 and _differs(op, case, seed, few, many, size, columns // 2):
            columns //= 2
        return {"few": few, "many": many, "size": size, "columns": columns}
    return None


def _candidates(most: int) -> set[int]:
    return {*range(1, 20), 32, 33, 64, 65, 128, 129, 255, 256, 257, 300, 512, 1024, most}


def _differs(
    op: Callable[..., Any], case: Case, seed: int, few: int, many: int, size: int, columns: int
) -> bool:
    """Runs the very text of the script's data and call."""
    setup, call = CALLS[case.spec.family]
    gen = torch.Generator().manual_seed(seed)
    reach, dtype = _REACH[case.dtype], case.dtype

    def values(*shape: int) -> torch.Tensor:
        far = torch.exp2(torch.randint(-reach, reach + 1, shape, generator=gen).float())
        return (torch.randn(shape, generator=gen) * far).to(dtype)

    names: dict[str, Any] = {
        "op": op, "values": values, "M": many, "K": size, "N": columns, "torch": torch,
    }  # fmt: skip
    try:
        x = values(many, size)
        exec(setup, names)
        whole = eval(call, names | {"x": x})
        part = eval(call, names | {"x": x[:few]})
    except (RuntimeError, TypeError, ValueError):
        return False
    integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[whole.element_size()]
    return not torch.equal(whole[:few].contiguous().view(integer), part.contiguous().view(integer))


def _text(
    spec: Spec, dtype: torch.dtype, found: dict[str, int], seed: int, threads: int, locate: Locator
) -> str:
    place = locate.place(spec.operator)
    setup, call = CALLS[spec.family]
    name = str(dtype).removeprefix("torch.")
    imports = "" if place.imports == "import torch" else place.imports
    return TEMPLATE.format(
        title=f"{spec.operator} in {name}: the bits of a row depend on the batch.",
        imports=imports, expression=place.expression, setup=setup, call=call, dtype=name,
        seed=seed, threads=threads, reach=_REACH[dtype], width=2 * dtype.itemsize, **found,
    )  # fmt: skip
