//go:build mage

// Targets of invar: each builds cmd/invar (cached by go build) and runs it.
package main

import (
	"context"

	"github.com/magefile/mage/mg"
)

// Default is what `mage` alone does.
var Default = Build.Auto

// Build builds, installs and probes the operators of one target.
type Build mg.Namespace

// Auto detects the SoC and builds for it.
func (Build) Auto(ctx context.Context) error { return invar(ctx, "build", "auto") }

// Cpu builds for the CPU of this host.
func (Build) Cpu(ctx context.Context) error { return invar(ctx, "build", "cpu") }

// Cuda builds for NVIDIA GPUs.
func (Build) Cuda(ctx context.Context) error { return invar(ctx, "build", "cuda") }

// Ascend910b builds for the Atlas A2 series.
func (Build) Ascend910b(ctx context.Context) error { return invar(ctx, "build", "ascend910b") }

// Ascend910_93 builds for the Atlas A3 series.
func (Build) Ascend910_93(ctx context.Context) error { return invar(ctx, "build", "ascend910_93") }

// Ascend950 builds for the Ascend 950PR and 950DT.
func (Build) Ascend950(ctx context.Context) error { return invar(ctx, "build", "ascend950") }

// Detect says which SoC this host has, and on what evidence.
func Detect(ctx context.Context) error { return invar(ctx, "detect", "--evidence") }

// Probe checks the installation, level by level.
func Probe(ctx context.Context) error { return invar(ctx, "probe") }
