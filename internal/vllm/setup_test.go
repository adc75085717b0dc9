package vllm_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/internal/vllm"
)

// A real environment takes its gigabytes from the cache; what Setup does beside
// the installation is repeated here: nothing when all is there, models again
// when one is damaged.
func TestSetupKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	place := testkit.VLLM(t)
	prefix := t.TempDir()
	dir := vllm.Dir(prefix, place.Version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"env", "setup.json"} {
		if err := os.Symlink(filepath.Join(place.Dir, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	o := vllm.Options{
		Prefix: prefix, Version: place.Version, Models: []string{"small-bfloat16"}, LogDir: t.TempDir(),
		Env: os.Environ(), Runner: run.System{}, Progress: report.Discard,
	}
	before, err := vllm.Preview(o)
	if err != nil || before.UpToDate {
		t.Fatalf("without the model: got up to date %v, %v", before.UpToDate, err)
	}
	made, err := vllm.Setup(t.Context(), o)
	if err != nil || made.UpToDate {
		t.Fatalf("first: got up to date %v, %v", made.UpToDate, err)
	}
	again, err := vllm.Setup(t.Context(), o)
	if err != nil || !again.UpToDate {
		t.Fatalf("second: got up to date %v, %v", again.UpToDate, err)
	}
	if err := os.Remove(filepath.Join(again.Models["small-bfloat16"], "model.safetensors")); err != nil {
		t.Fatal(err)
	}
	if third, err := vllm.Setup(t.Context(), o); err != nil || third.UpToDate {
		t.Fatalf("without its weights: got up to date %v, %v", third.UpToDate, err)
	}
}

func TestFailedInstallationLeavesNothingThatLooksWhole(t *testing.T) {
	t.Parallel()
	prefix := t.TempDir()
	bin := t.TempDir()
	uv := "#!/bin/sh\ncase $1 in venv) mkdir -p \"$5/bin\" && : >\"$5/bin/python\" ;; *) echo 'No solution found' >&2; exit 1 ;; esac\n"
	if err := os.WriteFile(filepath.Join(bin, "uv"), []byte(uv), 0o755); err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	_, err := vllm.Setup(t.Context(), vllm.Options{
		Prefix: prefix, Version: vllm.Newest, LogDir: t.TempDir(), Env: env, Runner: run.System{}, Progress: report.Discard,
	})
	if report.ExitCode(err) != report.BuildFailed || !strings.Contains(err.Error(), "exit code 1") {
		t.Fatalf("got %v, want exit code %d", err, report.BuildFailed)
	}
	if _, err := vllm.Installed(prefix, vllm.Newest); report.ExitCode(err) != report.Unmet {
		t.Errorf("installed: got %v, want exit code %d", err, report.Unmet)
	}
	if _, err := os.Stat(filepath.Join(vllm.Dir(prefix, vllm.Newest), "env")); !os.IsNotExist(err) {
		t.Errorf("the half environment is still there: %v", err)
	}
}
