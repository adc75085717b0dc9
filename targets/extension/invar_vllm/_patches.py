"""What stands in the place of vLLM's own functions."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from ._refusal import RefusedError

if TYPE_CHECKING:
    from ._record import Record

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
MARK = "invar_packed"  # attribute of a linear function that is ours

Function = Callable[..., Any]


def linear(original: Function, record: Record) -> Function:
    """Linear layers and lm_head: weights packed once, then linear_packed."""
    ops = torch.ops.batch_invariant_ops

    @functools.wraps(original)
    def dispatch(layer: Any, remove_weight: bool) -> None:
        weight = layer.weight
        if weight.is_meta:  # a layer of another pipeline stage
            original(layer, remove_weight)
            return
        if weight.ndim != 2 or weight.dtype not in DTYPES:
            raise RefusedError(
                f"a weight of {tuple(weight.shape)} in {weight.dtype} "
                f"({getattr(layer, 'prefix', type(layer).__name__)})",
                want="a matrix of float32, bfloat16 or float16",
                hint="Experts and convolutions have no invariant kernel yet.",
            )
        columns, packed = weight.size(0), ops.pack(weight.detach())

        def call(
            x: torch.Tensor,
            weight: torch.Tensor,
            bias: torch.Tensor | None,
            _packed: torch.Tensor = packed,
            _columns: int = columns,
        ) -> torch.Tensor:
            out: torch.Tensor = torch.ops.batch_invariant_ops.linear_packed(
                x, _packed, _columns, bias
            )
            return out

        setattr(call, MARK, True)
        layer.cpu_linear = call
        record.linear(columns, weight.size(1), weight.dtype)
        if remove_weight:
            empty = torch.empty(0, dtype=weight.dtype, device=weight.device)
            layer.weight = torch.nn.Parameter(empty, requires_grad=False)

    return dispatch


def norm(original: Function, record: Record) -> Function:
    """RMSNorm, with and without a residual."""

    def forward(self: Any, x: torch.Tensor, residual: torch.Tensor | None = None) -> Any:
        ops = torch.ops.batch_invariant_ops
        shape, eps = [x.shape[-1]], self.variance_epsilon
        if residual is None:
            return ops.rms_norm(x, shape, self.weight.data if self.pass_weight else None, eps)
        weight = self.weight.data if self.pass_weight_add else None
        return ops.add_rms_norm(x, residual, shape, weight, eps)

    return forward


def attention(original: Function, record: Record) -> Function:
    """One query row a request, so that no tile depends on what shares the step.

    A row at position p attends to the p+1 tokens of its own request that are in
    the cache by then; as a request of one token with that length it computes the
    same and meets the kernel's path for decodes, which has no split and no tile
    over rows. Exact for causal attention of a decoder and nothing else.
    """

    @functools.wraps(original)
    def build(self: Any, common_prefix_len: int, common: Any, fast_build: bool = False) -> Any:
        if common.causal is not True or self.is_cross_attention or self.is_encoder_only_attention:
            raise RefusedError(
                "attention that is not that of a causal decoder",
                want="a causal decoder",
                hint="Rows of other attention are not independent.",
            )
        rows = as_rows(common)
        record.step(int(rows.num_reqs))
        return original(self, common_prefix_len, rows, fast_build)

    return build


def as_rows(common: Any) -> Any:
    """The batch with every query token as a request of its own."""
    count = common.num_reqs
    starts = common.query_start_loc[: count + 1].to(torch.int64)
    lengths = starts[1:] - starts[:-1]
    rows = int(starts[-1])
    if rows == count:
        return common
    request = torch.repeat_interleave(torch.arange(count), lengths)
    # Tokens of the request after this one in the step are not yet in its past.
    after = starts[1:][request] - 1 - torch.arange(rows)
    seq_lens = common.seq_lens[:count].to(torch.int64)[request] - after
    start_loc = torch.arange(rows + 1, dtype=common.query_start_loc.dtype)
    return dataclasses.replace(
        common,
        num_reqs=rows,
        query_start_loc=start_loc,
        query_start_loc_cpu=start_loc,
        seq_lens=seq_lens.to(common.seq_lens.dtype),
        max_query_len=1,
        block_table_tensor=common.block_table_tensor[request].contiguous(),
    )


def load(original: Function, record: Record) -> Function:
    """After a worker has its model: check every module, route aten, write the record."""

    @functools.wraps(original)
    def load_model(self: Any, *args: Any, **kwargs: Any) -> Any:
        from ._audit import audit, configuration

        configuration(self.vllm_config, record.hooks)
        result = original(self, *args, **kwargs)
        audit(self.model_runner.get_model(), record)
        record.worker(self)
        return result

    return load_model


PATCHES: dict[str, Callable[[Function, Any], Function]] = {
    "linear": linear,
    "norm": norm,
    "attention": attention,
    "load": load,
}
