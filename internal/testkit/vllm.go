package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/vllm"
)

// VLLM is the setup of vLLM in the CI cache, made by `invar setup vllm` from
// .ci/setup: environment, models, and the operators of the tree that made it.
// Without it the test is skipped, and fails in CI.
func VLLM(t testing.TB) vllm.Place {
	t.Helper()
	place, err := vllm.Installed(filepath.Join(Cache(), "vllm"), vllm.Newest)
	if err == nil && len(place.Models) < 2 {
		err = fmt.Errorf("%s has %d models", place.Dir, len(place.Models))
	}
	switch {
	case err != nil && os.Getenv("INVAR_CI") == "1":
		t.Fatal(err)
	case err != nil:
		t.Skipf("needs vLLM: %v; .ci/setup makes it", err)
	}
	return place
}

// PrivateVLLM is an environment at dir with links to everything in that of
// place but invar's hook, so that a test can install its own operators.
func PrivateVLLM(t testing.TB, place vllm.Place, dir string) python.Python {
	t.Helper()
	shared, ok := python.Inspect(place.Python)
	if !ok {
		t.Fatalf("%s is no Python environment", place.Python)
	}
	py, err := Private(shared, dir)
	if err != nil {
		t.Fatal(err)
	}
	return py
}
