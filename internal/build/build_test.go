package build

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/runpkg"
	"github.com/invar-ops/invar/internal/store"
)

// A watch runs processes and remembers which, and how many at a time.
type watch struct {
	mu       sync.Mutex
	ran      []string
	now, top int
}

func (w *watch) Run(ctx context.Context, cmd run.Cmd) (run.Result, error) {
	w.mu.Lock()
	w.now++
	w.top = max(w.top, w.now)
	w.ran = append(w.ran, cmd.Argv[len(cmd.Argv)-1])
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.now--
		w.mu.Unlock()
	}()
	return run.System{}.Run(ctx, cmd)
}

// shell is a step that runs script; the script is its last argument and, with
// salt, what its fingerprint is made of.
func shell(id, salt, script string, outputs []string, needs ...string) plan.Step {
	return plan.Step{
		ID: id, Stage: plan.Stage1, Kind: plan.Run, Argv: []string{"/bin/sh", "-c", script}, Needs: needs, Outputs: outputs,
		Inputs: []plan.Input{{Name: "src/k/a.c", Digest: salt}}, Fingerprint: fingerprint(id, salt, script, strings.Join(needs, " ")),
	}
}

func fingerprint(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

var sources = fstest.MapFS{"k/a.c": {Data: []byte("source\n")}, "k/a.h": {Data: []byte("header\n")}}

// builder is one over prefix, closed when the test ends.
func builder(t *testing.T, prefix string, r run.Runner, jobs int, steps ...plan.Step) *Builder {
	t.Helper()
	st, err := store.Open(prefix)
	if err != nil {
		t.Fatal(err)
	}
	b, err := New(Options{
		Plan: plan.Plan{Prefix: prefix, Steps: steps}, Store: st, Runner: r, Env: os.Environ(), Sources: sources,
		LogDir: filepath.Join(prefix, "log"), Jobs: jobs,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(b.work); err == nil {
			t.Errorf("%s was left behind", b.work)
		}
	})
	return b
}

func makeIt(t *testing.T, b *Builder, id string) Artifact {
	t.Helper()
	a, err := b.Make(t.Context(), id, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// chain is two compiles of one source and a link of both.
func chain(salt string) []plan.Step {
	link := shell("link", "", "cat o/a o/b >o/lib", []string{"o/lib"}, "a", "b")
	link.Fingerprint = fingerprint("link", salt)
	return []plan.Step{
		shell("a", "", "sed s/^/a-/ src/k/a.c >o/a", []string{"o/a"}),
		shell("b", salt, "sed s/^/b-/ src/k/a.c >o/b", []string{"o/b"}),
		link,
	}
}

func TestEveryStepOnceAndOnlyWhatChanged(t *testing.T) {
	t.Parallel()
	prefix := t.TempDir()
	for _, tc := range []struct {
		salt   string
		runs   int
		cached bool
	}{{"1", 3, false}, {"1", 0, true}, {"2", 2, false}, {"1", 0, true}} {
		var w watch
		var ticked atomic.Int64
		b := builder(t, prefix, &w, 1, chain(tc.salt)...)
		a, err := b.Make(t.Context(), "link", func() { ticked.Add(1) })
		ticks := int(ticked.Load())
		if err != nil {
			t.Fatal(err)
		}
		if got := text(t, a.Path); got != "a-source\nb-source\n" || a.Name != "lib" {
			t.Errorf("%s: made %q", a.Name, got)
		}
		if len(w.ran) != tc.runs || ticks != tc.runs || a.Cached != tc.cached {
			t.Errorf("salt %s: ran %q, %d ticks, cached %v; want %d and %v", tc.salt, w.ran, ticks, a.Cached, tc.runs, tc.cached)
		}
	}
}

// TestPackAfterCachedLink: what a step reads of the sources is there although
// no compile ran in this build.
func TestPackAfterCachedLink(t *testing.T) {
	t.Parallel()
	prefix := t.TempDir()
	makeIt(t, builder(t, prefix, run.System{}, 1, chain("1")...), "link")
	pack := plan.Step{
		ID: "pack", Stage: plan.Stage1, Kind: plan.Pack, Needs: []string{"link"}, Fingerprint: fingerprint("pack"),
		Inputs: []plan.Input{{Name: "invar", Digest: "1"}, {Name: "src/k/a.h"}}, Outputs: []string{"dist/ops-1.0.0-linux.x86_64.run"},
		Spec: plan.PackSpec{
			Name: "ops", Version: "1.0.0", Platform: "linux.x86_64", Target: "cpu", Contract: "c/1",
			Files: []plan.File{{From: "o/lib", To: "lib/l.so"}, {From: "src/k/a.h", To: "include/a.h"}},
		},
	}
	var w watch
	a := makeIt(t, builder(t, prefix, &w, 1, append(chain("1"), pack)...), "pack")
	p, err := runpkg.Open(a.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var paths []string
	for _, f := range p.Manifest.Files {
		paths = append(paths, f.Path)
	}
	if !slices.Contains(paths, "include/a.h") || !slices.Contains(paths, "lib/l.so") || len(w.ran) != 0 {
		t.Errorf("package holds %v, processes %q; want both files and none", paths, w.ran)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, script, cause, hint, tail string }{
		{"compiler error", "echo 'a.c:1:1: error: unknown type'; exit 1", "", "", "unknown type"},
		{"full prefix", "echo '/tmp/x.s: fatal error: error writing to /tmp/x.s: No space left on device'; exit 1", "prefix", "invar gc", "No space"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			prefix := t.TempDir()
			steps := []plan.Step{
				shell("bad", "", tc.script, []string{"o/bad"}),
				shell("slow", "", "sleep 20; : >o/slow", []string{"o/slow"}),
				shell("link", "", ": >o/lib", []string{"o/lib"}, "slow", "bad"),
			}
			start := time.Now()
			_, err := builder(t, prefix, run.System{}, 2, steps...).Make(t.Context(), "link", func() {})
			p, ok := errors.AsType[*report.Problem](err)
			if !ok || p.Code != report.BuildFailed || !strings.Contains(err.Error(), "bad") {
				t.Fatalf("got %v, want a failure of stage 1 at bad with exit code 4", err)
			}
			if time.Since(start) > 15*time.Second {
				t.Error("the other compile was not stopped")
			}
			if !strings.Contains(p.Cause, tc.cause) || !strings.Contains(p.Hint, tc.hint) || !strings.Contains(p.Tail, tc.tail) {
				t.Errorf("cause %q, hint %q, tail %q; want %q, %q, %q in them", p.Cause, p.Hint, p.Tail, tc.cause, tc.hint, tc.tail)
			}
			if tc.cause != "" && !strings.Contains(p.Cause, prefix) {
				t.Errorf("cause %q does not name %s", p.Cause, prefix)
			}
			if log := text(t, p.Log); !strings.Contains(log, tc.tail) {
				t.Errorf("log %q", log)
			}
			// Nothing of it counts as done.
			var w watch
			steps[0].Argv[2], steps[1].Argv[2] = ": >o/bad", ": >o/slow"
			makeIt(t, builder(t, prefix, &w, 2, steps...), "link")
			if len(w.ran) != 3 {
				t.Errorf("the next build ran %q, want all three steps", w.ran)
			}
		})
	}
}

// TestHintOfTheStoreIsKept: the way out that the place of the failure knows
// is what the user reads.
func TestHintOfTheStoreIsKept(t *testing.T) {
	t.Parallel()
	prefix := t.TempDir()
	step := shell("a", "", "rm -rf ../../store; : >../../store; : >o/a", []string{"o/a"})
	_, err := builder(t, prefix, run.System{}, 1, step).Make(t.Context(), "a", func() {})
	p, ok := errors.AsType[*report.Problem](err)
	if !ok || !strings.Contains(p.Hint, "--prefix") {
		t.Errorf("got %v, want a hint that names --prefix", err)
	}
}

func TestJobsAtATime(t *testing.T) {
	t.Parallel()
	for _, jobs := range []int{1, 2} {
		var steps []plan.Step
		var needs []string
		for i := range 5 {
			id := fmt.Sprint("c", i)
			steps, needs = append(steps, shell(id, "", "sleep 0.1; : >o/"+id, []string{"o/" + id})), append(needs, id)
		}
		steps = append(steps, shell("link", "", ": >o/lib", []string{"o/lib"}, needs...))
		var w watch
		makeIt(t, builder(t, t.TempDir(), &w, jobs, steps...), "link")
		if w.top != jobs {
			t.Errorf("--jobs %d: %d at a time", jobs, w.top)
		}
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	prefix := t.TempDir()
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(200*time.Millisecond, func() { cancel(context.Canceled) })
	step := shell("slow", "", "sleep 20; : >o/slow", []string{"o/slow"})
	start := time.Now()
	_, err := builder(t, prefix, run.System{}, 1, step).Make(ctx, "slow", func() {})
	if !errors.Is(err, context.Canceled) || time.Since(start) > 15*time.Second {
		t.Errorf("got %v after %v, want the interruption at once", err, time.Since(start))
	}
	if _, why, err := store.At(prefix).Lookup(t.Context(), step.Fingerprint); err != nil || why == "" {
		t.Errorf("an interrupted step is on record (%v)", err)
	}
}

// TestStoreKeepsItsBytes: a tool that writes into its inputs damages copies.
func TestStoreKeepsItsBytes(t *testing.T) {
	t.Parallel()
	prefix := t.TempDir()
	steps := append(chain("1"), shell("strip", "", "echo x >>o/lib; cp o/lib o/small", []string{"o/small"}, "link"))
	makeIt(t, builder(t, prefix, run.System{}, 1, steps...), "strip")
	if got := text(t, makeIt(t, builder(t, prefix, run.System{}, 1, steps...), "link").Path); got != "a-source\nb-source\n" {
		t.Errorf("the store now holds %q", got)
	}
}

// TestProcessesSeeNothingOfTheUser: a stray flag of the user would break the contract.
func TestProcessesSeeNothingOfTheUser(t *testing.T) {
	t.Setenv("CXXFLAGS", "-ffast-math")
	step := shell("env", "", "env >o/env", []string{"o/env"})
	step.Env = []string{"LC_ALL=C"}
	got := text(t, makeIt(t, builder(t, t.TempDir(), run.System{}, 1, step), "env").Path)
	if strings.Contains(got, "CXXFLAGS") || !strings.Contains(got, "LC_ALL=C") || !strings.Contains(got, "TMPDIR=") {
		t.Errorf("the process saw\n%s", got)
	}
}
