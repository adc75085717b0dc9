package main

import (
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/invar-ops/invar/internal/testkit"
)

// TestStory is the story of docs/vllm.md as a user types it, on a real server:
// the second command is the one that the first prints.
func TestStory(t *testing.T) {
	if testing.Short() {
		t.Skip("short: starts vLLM servers")
	}
	testkit.VLLM(t) // skips, or fails in CI, where it is missing
	testscript.Run(t, testscript.Params{
		Dir: "testdata/story",
		Setup: func(e *testscript.Env) error {
			e.Setenv("INVAR_HOME", filepath.Join(testkit.Cache(), "vllm"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("NO_COLOR", "1")
			e.Setenv("TMPDIR", "/tmp") // sockets of vLLM lie there, and their paths have to be short
			return nil
		},
	})
}
