"""Batch invariant operators for Ascend NPUs, in torch.ops.batch_invariant_ops."""

import torch  # noqa: F401
import torch_npu  # noqa: F401

from . import _C  # noqa: F401

__version__ = "@VERSION@"
