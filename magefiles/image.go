//go:build mage

package main

import (
	"context"

	"github.com/magefile/mage/mg"
)

// Image builds container images.
type Image mg.Namespace

// Binary builds the image of invar alone, for COPY --from.
func (Image) Binary(ctx context.Context) error { return invar(ctx, "image", "build", "binary") }

// Cpu builds the CPU image.
func (Image) Cpu(ctx context.Context) error { return invar(ctx, "image", "build", "cpu") }

// Cuda builds the CUDA image.
func (Image) Cuda(ctx context.Context) error { return invar(ctx, "image", "build", "cuda") }

// Ascend910b builds the image of the Atlas A2 series.
func (Image) Ascend910b(ctx context.Context) error { return invar(ctx, "image", "build", "ascend910b") }

// Ascend910_93 builds the image of the Atlas A3 series.
func (Image) Ascend910_93(ctx context.Context) error {
	return invar(ctx, "image", "build", "ascend910_93")
}

// Ascend950 builds the image of the Ascend 950PR and 950DT.
func (Image) Ascend950(ctx context.Context) error { return invar(ctx, "image", "build", "ascend950") }
