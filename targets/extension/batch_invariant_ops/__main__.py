"""python -m batch_invariant_ops: says what an import gives, and exits with 1 when it is no good."""

from __future__ import annotations

import sys

import torch

import batch_invariant_ops as ops


def main() -> int:
    """Prints the quick check."""
    print(f"batch_invariant_ops {ops.__version__} from {ops.__file__}")
    print(f"torch {torch.__version__}")
    print(f"stage 1 {ops.stage1_version()}, {ops.contract()}, {ops.isa()}: {ops.library_path()}")
    checks = ops.quick_check()
    for check in checks:
        print(f"{'ok  ' if check.ok else 'FAIL'} {check.name}: {check.detail}")
    return 0 if all(check.ok for check in checks) else 1


if __name__ == "__main__":
    sys.exit(main())
