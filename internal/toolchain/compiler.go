// Package toolchain finds C++ compilers and says which one exactly it is, so
// that a changed compiler changes the fingerprint of what it made.
package toolchain

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/run"
)

// A Compiler is a C++ compiler that answered.
type Compiler struct {
	Command  string `json:"command"`  // as found: "g++", or what CXX says
	Path     string `json:"path"`     // resolved executable
	Vendor   string `json:"vendor"`   // "gcc" or "clang"
	Version  string `json:"version"`  // "12.2.0"
	Banner   string `json:"banner"`   // first line of --version
	Machine  string `json:"machine"`  // "x86_64-linux-gnu"
	Identity string `json:"identity"` // path, size and mtime of the executable behind all links
}

// A Reason says why a compiler was not taken.
type Reason struct {
	Command string `json:"command"`
	Reason  string `json:"reason"`
}

// Names are asked in this order when CXX is not set.
var Names = []string{"c++", "g++", "clang++"}

// Find returns the compiler that CXX names, else the first of Names that
// answers. cache is a file that remembers answers by identity, so that a
// second look starts no process; empty keeps none.
func Find(ctx context.Context, env []string, r run.Runner, cache string) (Compiler, []Reason) {
	names := Names
	if cxx := run.Getenv(env, "CXX"); cxx != "" {
		names = []string{cxx}
	}
	var reasons []Reason
	for _, name := range names {
		c, err := Inspect(ctx, name, env, r, cache)
		if err == nil {
			return c, reasons
		}
		reasons = append(reasons, Reason{name, err.Error()})
	}
	return Compiler{}, reasons
}

// Inspect asks the compiler name for its version and machine.
func Inspect(ctx context.Context, name string, env []string, r run.Runner, cache string) (Compiler, error) {
	path, err := run.LookPath(name, env)
	if err != nil {
		return Compiler{}, err
	}
	id, err := Identity(path)
	if err != nil {
		return Compiler{}, err
	}
	known := LoadAnswers[Compiler](cache)
	if c, ok := known[id]; ok && c.Path == path {
		c.Command = name
		return c, nil
	}
	c := Compiler{Command: name, Path: path, Identity: id}
	if err := ask(ctx, &c, env, r); err != nil {
		return Compiler{}, err
	}
	known[id] = c
	SaveAnswers(cache, known)
	return c, nil
}

var number = regexp.MustCompile(`\b(\d+\.\d+(?:\.\d+)?)\b`)

func ask(ctx context.Context, c *Compiler, env []string, r run.Runner) error {
	res, err := r.Run(ctx, run.Cmd{Argv: []string{c.Path, "--version"}, Env: env, Timeout: 20 * time.Second})
	if err != nil {
		return err
	}
	c.Banner, _, _ = strings.Cut(string(res.Stdout), "\n")
	c.Vendor = "gcc"
	if bytes.Contains(bytes.ToLower(res.Stdout), []byte("clang")) {
		c.Vendor = "clang"
	}
	// "g++ (Debian 12.2.0-14+deb12u1) 12.2.0": the last number is the version;
	// "Debian clang version 14.0.6": the first is.
	all := number.FindAllString(c.Banner, -1)
	if len(all) == 0 {
		return fmt.Errorf("no version in %q", c.Banner)
	}
	c.Version = all[len(all)-1]
	if c.Vendor == "clang" {
		c.Version = all[0]
	}
	res, err = r.Run(ctx, run.Cmd{Argv: []string{c.Path, "-dumpmachine"}, Env: env, Timeout: 20 * time.Second})
	if err != nil {
		return err
	}
	c.Machine = strings.TrimSpace(string(res.Stdout))
	return nil
}
