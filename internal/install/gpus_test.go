package install

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/runpkg"
)

// withGPUCode is a bundle whose manifest says for which architectures it has code.
func withGPUCode(t *testing.T, arches ...string) bundle {
	t.Helper()
	dir := t.TempDir()
	raw, err := json.Marshal(map[string]any{"arches": arches})
	if err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(dir, "invar-ops-cuda13.2-1.0.0-linux.x86_64.run")
	_, err = runpkg.Write(t.Context(), run, runpkg.Spec{
		Manifest: runpkg.Manifest{Name: "invar-ops-cuda13.2", Version: "1.0.0", Platform: "linux.x86_64", Extra: map[string]json.RawMessage{"cuda": raw}},
		Tree:     fstest.MapFS{"lib/libinvar_cuda.so": {Data: []byte("x"), Mode: 0o755}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return bundle{run, makeBundle(t, t.TempDir(), "a", 10).wheel}
}

// TestGPUs: a package without code for any device of the host is refused, and
// what was installed before stays.
func TestGPUs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		arches  []string
		devices []int
		refuse  bool
	}{
		{"no device here", []string{"9.0"}, nil, false},
		{"its device", []string{"8.0", "9.0"}, []int{90}, false},
		{"a later minor", []string{"8.0"}, []int{89}, false},
		{"one of two", []string{"8.0"}, []int{80, 90}, false},
		{"another major", []string{"8.0", "12.0"}, []int{90}, true},
		{"an older minor", []string{"8.9"}, []int{80, 86}, true},
		{"that chip alone", []string{"10.0a"}, []int{103}, true},
		{"the family", []string{"10.0f"}, []int{103}, false},
		{"PTX", []string{"8.0+PTX"}, []int{120}, false},
		{"nonsense in the manifest", []string{"nine"}, []int{90}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, py := openPrefix(t), fakePython(t)
			first := apply(t, p, request(py), makeBundle(t, t.TempDir(), "b", 10))
			before := tree(t, py.Purelib)
			req := request(py)
			req.Bundle.Target, req.Bundle.Flavour, req.Bundle.Supersedes = "cuda", "cuda", []string{"cpu"}
			req.GPUs = tc.devices
			b := withGPUCode(t, tc.arches...)
			r, err := p.Apply(t.Context(), req, b.run, b.wheel)
			if !tc.refuse {
				if err != nil || r.Generation != first.Generation+1 {
					t.Errorf("got %v, want it installed", err)
				}
				return
			}
			if err == nil || tc.arches[0] != "nine" && report.ExitCode(err) != report.Unmet {
				t.Fatalf("got %v, want a refusal with exit code 3", err)
			}
			if pr, ok := err.(*report.Problem); ok && tc.arches[0] != "nine" && (!strings.Contains(pr.Hint, "--arch") || pr.Got == "" || pr.Want == "") { //nolint:errorlint // as it is returned
				t.Errorf("got %+v, want both lists and a way out", pr)
			}
			if now, err := p.Current(py.ID()); err != nil || now.Generation != first.Generation {
				t.Errorf("current is %d, %v; want %d", now.Generation, err, first.Generation)
			}
			if after := tree(t, py.Purelib); !maps.Equal(before, after) {
				t.Error("the refusal changed site-packages")
			}
			if _, err := os.Stat(filepath.Join(p.Dir, "env", py.ID(), "gen", "2")); err == nil {
				t.Error("the refused generation was left behind")
			}
			healthy(t, first)
		})
	}
}

// TestSupersededFlavour: cuda holds the operators of cpu and takes its place;
// the way back is rollback, and cpu does not take the place of cuda unasked.
func TestSupersededFlavour(t *testing.T) {
	t.Parallel()
	p, py := openPrefix(t), fakePython(t)
	cpu := makeBundle(t, t.TempDir(), "a", 10)
	apply(t, p, request(py), cpu)
	req := request(py)
	req.Bundle.Target, req.Bundle.Flavour, req.Bundle.Supersedes = "cuda", "cuda", []string{"cpu"}
	b := withGPUCode(t, "9.0")
	if r, err := p.Apply(t.Context(), req, b.run, b.wheel); err != nil || r.Flavour != "cuda" {
		t.Fatalf("cuda over cpu: %v", err)
	}
	_, err := p.Apply(t.Context(), request(py), cpu.run, cpu.wheel)
	refused(t, err)
	if _, err := p.Rollback(t.Context(), py.ID()); err != nil {
		t.Fatal(err)
	}
	if r, err := p.Current(py.ID()); err != nil || r.Flavour != "cpu" {
		t.Errorf("after rollback: %s, %v; want cpu", r.Flavour, err)
	}
}
