"""What is routed, what is not and why, and how often each ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# What never reaches a routed operator, or only in part. Said, not measured.
NOT_ROUTED: dict[str, str] = {
    "torch.compile (inductor)": (
        "fused reductions, softmax and norms become generated code that no override sees, and "
        "only products that it leaves to aten::mm.out, addmm.out and bmm.out arrive; use "
        "torch.ops.batch_invariant_ops.* there"
    ),
    "scaled_dot_product_attention": (
        "_scaled_dot_product_flash_attention_for_cpu is one fused kernel; only the math backend "
        "is made of bmm and _softmax"
    ),
    "conv1d, conv2d, conv3d": "oneDNN and native convolution kernels",
    "native_layer_norm, native_group_norm, native_batch_norm": "fused kernels of their own",
    "cumsum, prod, var, std, linalg_vector_norm, logsumexp": "reductions without a kernel here",
    "_softmax_backward_data, _log_softmax_backward_data": (
        "backward of softmax; the gradients of the routed products are routed themselves"
    ),
    "float64, integer, bool and complex tensors": "no invariant kernel; the original runs",
    "sparse, quantized and nested tensors, other devices": "they have their own dispatch keys",
    "tensors under torch.jit and oneDNN-packed modules": "their kernels are called directly",
}

# What is invariant although no operator of its own is routed.
FOLLOWS: dict[str, str] = {
    "F.linear": "mm, or addmm with a bias",
    "torch.matmul, @, einsum, tensordot": "dot, mv, mm or bmm, by the dimensions",
    "F.softmax, F.log_softmax, F.cross_entropy": "_softmax, _log_softmax",
    "F.rms_norm": (
        "pow, mean.dim, rsqrt and mul, of which only mean.dim reduces; the fused kernel is "
        "torch.ops.batch_invariant_ops.rms_norm"
    ),
    "x.sum(), x.mean()": "sum.dim_IntList, mean.dim over every dimension",
}


@dataclass(frozen=True)
class RouteReport:
    """One routed aten operator: calls on the invariant kernel, and on the original."""

    name: str
    routed: int
    original: dict[str, int] = field(default_factory=dict)
    displaced: bool = False


def _routes_as_dict(routes: tuple[RouteReport, ...]) -> dict[str, Any]:
    return {
        r.name: {"routed": r.routed, "original": dict(r.original), "displaced": r.displaced}
        for r in routes
    }


def _table(routes: tuple[RouteReport, ...]) -> list[str]:
    lines = [f"{'aten operator':24}{'routed':>10}{'original':>10}"]
    for r in routes:
        lines.append(f"{r.name:24}{r.routed:>10}{sum(r.original.values()):>10}")
        lines += [f"    {count} x {why}" for why, count in r.original.items()]
        if r.displaced:
            lines.append("    another library has registered its own kernel in this place")
    return lines


@dataclass(frozen=True)
class CudaReport:
    """The CUDA part: what it is and how often each route ran there."""

    contract: str
    library: str
    arches: str
    routes: tuple[RouteReport, ...]


@dataclass(frozen=True)
class Report:
    """The answer of report(); str() of it is a table."""

    enabled: bool
    registered: bool
    contract: str
    isa: str | None
    library: str
    routes: tuple[RouteReport, ...]
    follows: dict[str, str]
    not_routed: dict[str, str]
    cuda: CudaReport | None = None
    cuda_missing: str = ""  # why cuda is None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "enabled": self.enabled,
            "registered": self.registered,
            "contract": self.contract,
            "isa": self.isa,
            "library": self.library,
            "routes": _routes_as_dict(self.routes),
            "cuda": None
            if self.cuda is None
            else {
                "contract": self.cuda.contract,
                "library": self.cuda.library,
                "arches": self.cuda.arches,
                "routes": _routes_as_dict(self.cuda.routes),
            },
            "cuda_missing": self.cuda_missing,
            "follows": dict(self.follows),
            "not_routed": dict(self.not_routed),
        }

    def __str__(self) -> str:
        state = "enabled" if self.enabled else "disabled"
        lines = [
            f"routing {state}, contract {self.contract}, {self.isa or 'no ISA level'}",
            f"stage 1 {self.library}",
            *_table(self.routes),
        ]
        if self.cuda is None:
            lines.append(f"CUDA: {self.cuda_missing}")
        else:
            lines.append(f"CUDA: contract {self.cuda.contract}, {self.cuda.arches}")
            lines += [f"stage 1 {self.cuda.library}", *_table(self.cuda.routes)]
        lines.append("invariant through the above:")
        lines += [f"  {name}: {how}" for name, how in self.follows.items()]
        lines.append("not routed:")
        lines += [f"  {name}: {why}" for name, why in self.not_routed.items()]
        return "\n".join(lines)
