"""Everything that only a GPU can show: numbers, invariance, graphs, speed.

Usage, with an installed cuda flavour: python gpu.py [--quick] [--no-speed] [--no-checks]
Exit codes: 0 all hold, 5 something does not, 6 there is no GPU or the check is blind.
Other processes on the GPU make the speeds worthless. With --device cpu the checks are
rehearsed, small, on the operators of the CPU: that shows nothing about a GPU and never
ends with 0.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
# Of the largest magnitude that a sum of this many terms has; roundings of the result.
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 8e-3, torch.float16: 1e-3}
QUICK = (1, 2, 17, 33, 64, 129, 255, 257, 300, 1025)
FULL = (
    1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300,
    511, 512, 513, 1024, 1025, 2048,
)  # fmt: skip
HIDDEN = (512, 4096, 2816, 90)
# What is aimed for: of torch.mm's speed, of a copy's bandwidth.
AIMS = {"linear": 0.6, "rms_norm": 0.7, "add_rms_norm": 0.7}

Op = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Extent:
    """Where and how far the checks go."""

    device: str
    counts: tuple[int, ...]  # numbers of rows
    hidden: tuple[int, ...]
    control: int  # k and n of the control products


REHEARSAL = Extent("cpu", (1, 2, 17, 33), (512, 90), 256)


@dataclass(frozen=True)
class Check:
    """One statement and whether it holds."""

    name: str
    ok: bool
    seen: str


@dataclass(frozen=True)
class Speed:
    """One row of the table; a ratio above 1 is faster than the other side."""

    operator: str
    rows: int
    us: float
    other_us: float
    ratio: float
    aim: float | None


def spread(device: str, *sizes: int, dtype: torch.dtype) -> Tensor:
    """Normal numbers of both signs with exponents spread, so that order shows."""
    reach = 12 if dtype == torch.float16 else 20
    x = torch.randn(sizes, device=device)
    e = torch.randint(-reach, 1, sizes, device=device).float()
    return (x * torch.exp2(e)).to(dtype)


def same(a: Tensor, b: Tensor) -> bool:
    """Whether the bits agree."""
    kind = torch.int32 if a.element_size() == 4 else torch.int16
    return torch.equal(a.contiguous().view(kind), b.contiguous().view(kind))


def operators(device: str, k: int, dtype: torch.dtype) -> dict[str, tuple[Op, Op]]:
    """Operators of rows [m, k] with their answer in float64."""
    ops = torch.ops.batch_invariant_ops
    w = spread(device, 260, k, dtype=dtype)
    bias, gain = spread(device, 260, dtype=dtype), spread(device, k, dtype=dtype)
    packed = ops.pack(w)
    b = w.t().contiguous()

    def norm(x: Tensor) -> Tensor:
        return torch.nn.functional.rms_norm(x.double(), [k], gain.double(), 1e-6)

    return {
        "mm": (lambda x: ops.mm(x, b), lambda x: x.double() @ b.double()),
        "linear": (
            lambda x: ops.linear(x, w, bias),
            lambda x: x.double() @ w.double().t() + bias.double(),
        ),
        "linear_packed": (
            lambda x: ops.linear_packed(x, packed, 260),
            lambda x: x.double() @ w.double().t(),
        ),
        "addmm": (
            lambda x: ops.addmm(bias, x, b, beta=0.5, alpha=1.5),
            lambda x: 1.5 * (x.double() @ b.double()) + 0.5 * bias.double(),
        ),
        "bmm": (lambda x: ops.bmm(x[None], b[None])[0], lambda x: x.double() @ b.double()),
        "sum": (lambda x: ops.sum(x, [1], True), lambda x: x.double().sum(1, True)),
        "mean": (lambda x: ops.mean(x, [1], True), lambda x: x.double().mean(1, True)),
        "softmax": (lambda x: ops.softmax(x, 1), lambda x: x.double().softmax(1)),
        "log_softmax": (lambda x: ops.log_softmax(x, 1), lambda x: x.double().log_softmax(1)),
        "rms_norm": (lambda x: ops.rms_norm(x, [k], gain, 1e-6), norm),
        "add_rms_norm": (
            lambda x: ops.add_rms_norm(x, x, [k], gain, 1e-6)[0],
            lambda x: norm(x + x),
        ),
    }


def moved(op: Op, whole: Tensor, x: Tensor, counts: tuple[int, ...]) -> list[int]:
    """Row counts at which some row has other bits than among all rows, or in a second run."""
    out = []
    for m in counts:
        last = x.size(0) - m
        first, again = op(x[:m]), op(x[:m])
        if not (same(first, whole[:m]) and same(first, again) and same(op(x[last:]), whole[last:])):
            out.append(m)
    return out


def neighbours(op: Op, x: Tensor) -> bool:
    """Whether a needle keeps its bits between zeros and outliers, wherever it stands."""
    alone = op(x[:1])
    for filler in (0.0, 1e4, -1e-4):
        for position in (0, 1, 7, 64, 128):
            rows = torch.full((129, x.size(1)), filler, dtype=x.dtype, device=x.device)
            rows[position] = x[0]
            if not same(op(rows)[position : position + 1], alone):
                return False
    return True


def captured(op: Op, x: Tensor) -> bool:
    """Whether a replayed graph gives the bits of a call."""
    want = op(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        got = op(x)
    got.zero_()
    graph.replay()
    torch.cuda.synchronize()
    return same(got, want)


def checks(extent: Extent) -> Iterator[Check]:
    """Numbers, bits by rows and neighbours, graphs: every operator, dtype and width."""
    counts = extent.counts
    for dtype in DTYPES:
        for k in extent.hidden:
            x = spread(extent.device, counts[-1], k, dtype=dtype)
            for name, (op, answer) in operators(extent.device, k, dtype).items():
                whole, want = op(x), answer(x)
                where = f"{name} {dtype} k={k}"
                off = float((whole.double() - want).abs().max() / want.abs().max().clamp_min(1e-30))
                yield Check(
                    f"{where} against float64", off <= TOLERANCE[dtype], f"off by {off:.1e}"
                )
                bad = moved(op, whole, x, counts)
                seen = f"row counts {bad} move bits" if bad else "same bits"
                yield Check(f"{where} rows", not bad, seen)
                yield Check(f"{where} neighbours", neighbours(op, x), "a needle between fillers")
                if extent.device == "cuda":
                    yield Check(f"{where} graph", captured(op, x[:33]), "replay against call")


def controls(extent: Extent) -> Iterator[Check]:
    """What has to be found, or the checks above see nothing."""
    device, n, counts = extent.device, extent.control, extent.counts
    x = spread(device, counts[-1], n, dtype=torch.bfloat16)
    w = spread(device, n, n, dtype=torch.bfloat16)
    wide, narrow = x.float(), w.float()
    ops = torch.ops.batch_invariant_ops
    bad = moved(lambda a: ops._control_mm(a, narrow), ops._control_mm(wide, narrow), wide, counts)
    yield Check("control: split by m", bool(bad), f"moves at {bad}")
    reversed_k = ops.mm(wide.flip(1), narrow.flip(0))
    yield Check("control: order shows", not same(reversed_k, ops.mm(wide, narrow)), "k reversed")
    bad = moved(lambda a: torch.mm(a, w), torch.mm(x, w), x, counts)
    print(f"torch.mm moves at row counts {bad}: an observation, it may be none")


def seconds(call: Callable[[], object]) -> float:
    """The median of 20 runs of a call, with the level 2 cache cleared in between."""
    clear = torch.empty(64 << 20, dtype=torch.float32, device="cuda")
    times = []
    for i in range(25):
        clear.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        if i >= 5:
            times.append(start.elapsed_time(end) / 1e3)
    return sorted(times)[len(times) // 2]


def line(name: str, m: int, own: float, other: float) -> Speed:
    """One row of the table, printed as it comes."""
    ratio = other / own
    print(f"{name[:24]:24}{m:>6}{own * 1e6:>10.1f}{other * 1e6:>10.1f}{ratio:>8.2f}")
    return Speed(name, m, own * 1e6, other * 1e6, ratio, AIMS.get(name.split(maxsplit=1)[0]))


def speed(counts: tuple[int, ...]) -> Iterator[Speed]:
    """mm against torch.mm, norms against a copy of as many bytes, in one run."""
    ops, n = torch.ops.batch_invariant_ops, 4096
    print(f"{'operator':24}{'m':>6}{'us':>10}{'other us':>10}{'ratio':>8}")
    for dtype in (torch.bfloat16, torch.float16):
        w = torch.randn(n, n, device="cuda", dtype=dtype)
        for m in counts:
            x = torch.randn(m, n, device="cuda", dtype=dtype)
            own, other = seconds(lambda: ops.linear(x, w)), seconds(lambda: torch.mm(x, w.t()))  # noqa: B023
            yield line(f"linear {dtype}", m, own, other)
    gain = torch.randn(n, device="cuda", dtype=torch.bfloat16)
    for m in (256, 2048, 16384):
        x = torch.randn(m, n, device="cuda", dtype=torch.bfloat16)
        to = torch.empty_like(x)
        other = seconds(lambda: to.copy_(x))  # noqa: B023
        for name, call, parts in (
            ("rms_norm", lambda: ops.rms_norm(x, [n], gain, 1e-6), 1),  # noqa: B023
            ("add_rms_norm", lambda: ops.add_rms_norm(x, x, [n], gain, 1e-6), 2),  # noqa: B023
            ("softmax", lambda: ops.softmax(x, 1), 1),  # noqa: B023
        ):
            yield line(name, m, seconds(call), parts * other)


def judge(extent: Extent, record: dict[str, Any]) -> int:
    """Runs the checks, and says what they show as an exit code."""
    blind = [c for c in controls(extent) if not c.ok]
    done = list(checks(extent))
    failed = [c for c in done if not c.ok]
    for c in failed:
        print(f"FAIL {c.name}: {c.seen}")
    print(f"{len(failed)} of {len(done)} checks fail" if failed else f"all {len(done)} checks hold")
    record["checks"] = [asdict(c) for c in done]
    record["blind"] = [asdict(c) for c in blind]
    if blind:
        print(f"inconclusive: {[c.name for c in blind]} found nothing", file=sys.stderr)
    if extent.device != "cuda":
        print("rehearsed on the CPU: nothing is shown about a GPU", file=sys.stderr)
    if failed:
        return 5
    return 6 if blind or extent.device != "cuda" else 0


def measure(extent: Extent, record: dict[str, Any]) -> None:
    """Runs the benchmark and says how much of it reaches its aim."""
    rows = list(speed(extent.counts))
    record["speed"] = [asdict(r) for r in rows]
    aimed = [r for r in rows if r.aim is not None]
    reached = [r for r in aimed if r.ratio >= (r.aim or 0.0)]
    print(f"{len(reached)} of {len(aimed)} ratios reach their aim {AIMS}")


def main() -> int:
    """Runs what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer numbers of rows")
    parser.add_argument("--no-speed", action="store_true", help="the checks only")
    parser.add_argument("--no-checks", action="store_true", help="the speeds only")
    parser.add_argument("--json", type=Path, help="also write what was found into this file")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: rehearse")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        print("not run: torch sees no CUDA device here", file=sys.stderr)
        return 6
    import batch_invariant_ops as bio

    torch.manual_seed(6)
    record: dict[str, Any] = {"torch": torch.__version__, "device": options.device}
    extent = REHEARSAL
    if options.device == "cuda":
        if bio.cuda_missing():
            print(f"not run: {bio.cuda_missing()}", file=sys.stderr)
            return 6
        bio.prepare_cuda()
        record["gpu"] = torch.cuda.get_device_name()
        print(f"{record['gpu']}, torch {torch.__version__}, {bio.cuda_contract()}")
        extent = Extent("cuda", QUICK if options.quick else FULL, HIDDEN, 2048)
    code = 0 if options.no_checks else judge(extent, record)
    if extent.device == "cuda" and not options.no_speed:
        measure(extent, record)
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
