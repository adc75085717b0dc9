// Package targets holds what differs from target to target, as data: one
// folder a target with its target.yaml and, for cpu and cuda, its sources.
// internal/target reads it. The all: prefix matters: without it go:embed drops
// files that start with "_", such as __init__.py.
package targets

import "embed"

// FS holds every file below this folder but Go sources and caches.
//
//go:embed all:chips all:ascend910b all:ascend910_93 all:ascend950 all:cpu all:cuda all:extension refused.yaml
var FS embed.FS
