//go:build mage

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/magefile/mage/mg"

	"github.com/invar-ops/invar/internal/run"
)

// invar builds the program and runs it on this terminal. Its exit code becomes
// mage's; note that `go tool` turns a death by signal into 0, so scripts that
// look at the code run the built binary.
func invar(ctx context.Context, args ...string) error {
	bin, err := binary(ctx)
	if err != nil {
		return err
	}
	return command(ctx, append([]string{bin}, args...)...)
}

// binary builds cmd/invar next to its final name and renames it, so that two
// mages at once never run half a file.
func binary(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "invar", "mage")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	tmp := filepath.Join(dir, fmt.Sprintf("invar.%d", os.Getpid()))
	// Static, as it goes into images.
	build := run.Cmd{Argv: []string{"go", "build", "-o", tmp, "./cmd/invar"}, Env: run.Setenv(os.Environ(), "CGO_ENABLED", "0")}
	if err := attach(ctx, build); err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "invar")
	return bin, os.Rename(tmp, bin)
}

func command(ctx context.Context, argv ...string) error {
	return attach(ctx, run.Cmd{Argv: argv, Env: os.Environ()})
}

func attach(ctx context.Context, cmd run.Cmd) error {
	code, err := run.Attach(ctx, cmd)
	switch {
	case err != nil:
		return err
	case code != 0:
		return mg.Fatalf(code, "%s ended with %d", filepath.Base(cmd.Argv[0]), code)
	}
	return nil
}
