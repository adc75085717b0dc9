// Package targets holds what differs from target to target, as data: one
// folder a target with its target.yaml and, for cpu and cuda, its sources.
// internal/target reads it. The all: prefix matters: without it go:embed drops
// files that start with "_", such as __init__.py.
package targets

import "embed"

// FS holds what building and judging need. Tests, benchmarks and the caches of
// linters beside them stay out of the binary.
//
//go:embed refused.yaml chips/*.yaml */target.yaml */sources.yaml
//go:embed vllm/*.yaml vllm/*.lock
//go:embed all:cpu/kernels
//go:embed cuda/embed.S all:cuda/kernels
//go:embed extension/pyproject.toml extension/invar_backend.py all:extension/csrc all:extension/batch_invariant_ops all:extension/invar_vllm
var FS embed.FS
