//go:build mage

package main

import "context"

// Test runs every test; .ci/setup makes the heavy environments that some need.
func Test(ctx context.Context) error { return command(ctx, "go", "test", "-timeout", "45m", "./...") }

// Check runs the linters and generators that CI runs.
func Check(ctx context.Context) error { return command(ctx, ".ci/check") }

// Bench measures both sides of every speed claim in one run.
func Bench(ctx context.Context) error { return command(ctx, ".ci/bench") }

// Gpu runs what only a GPU can show of the target cuda, and writes a record of it.
func Gpu(ctx context.Context) error { return command(ctx, ".ci/gpu") }

// Soak runs what takes longer than CI may: long fuzzing, thousands of kills.
func Soak(ctx context.Context) error { return command(ctx, ".ci/soak") }

// Dist writes the files of a release into dist: binaries, packages, bills of materials, sums.
func Dist(ctx context.Context) error { return command(ctx, "go", "run", "-C", ".ci/dist", ".") }

// Docs writes docs/reference from the commands.
func Docs(ctx context.Context) error {
	return command(ctx, "go", "test", "./cmd/invar", "-run", "^TestReference$", "-update")
}
