package build

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// twoStages is a stage of slow and quick compiles and one whose own compiles
// are run by script.
func twoStages(script string) []plan.Step {
	steps := []plan.Step{
		shell("first/slow", "", "sleep 0.3; : >o/slow", []string{"o/slow"}),
		shell("first/link", "", ": >o/first", []string{"o/first"}, "first/slow"),
	}
	for i := range 2 {
		name := fmt.Sprint("o/second", i)
		steps = append(steps, shell(fmt.Sprint("second/", i), "", script+" >"+name, []string{name}))
	}
	steps = append(steps, shell("second/link", "", "cat o/second0 o/second1 >o/lib", []string{"o/lib"}, "second/0", "second/1"))
	steps = append(steps, shell("second/wheel", "", "cp o/lib o/wheel", []string{"o/wheel"}, "second/link"))
	for i := range steps[2:] {
		steps[2+i].Stage = plan.Stage2
	}
	return steps
}

// TestPrepareUsesIdleSlots: what the second stage compiles runs beside the
// first one's last compile, its artifact is made on demand only, and every
// step is counted once, for its own stage.
func TestPrepareUsesIdleSlots(t *testing.T) {
	t.Parallel()
	var w watch
	b := builder(t, t.TempDir(), &w, 2, twoStages("echo x")...)
	if err := b.Prepare(t.Context(), "second/wheel"); err != nil {
		t.Fatal(err)
	}
	var first, second atomic.Int64
	if _, err := b.Make(t.Context(), "first/link", func() { first.Add(1) }); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	early := slices.Clone(w.ran)
	w.mu.Unlock()
	if len(early) < 3 || w.top != 2 || slices.Contains(early, "cp o/lib o/wheel") {
		t.Errorf("while the first stage was made %q ran, %d at a time; want compiles of the second beside it", early, w.top)
	}
	a, err := b.Make(t.Context(), "second/wheel", func() { second.Add(1) })
	if err != nil || text(t, a.Path) != "x\nx\n" {
		t.Fatalf("%v, %+v", err, a)
	}
	if first.Load() != 2 || second.Load() != 4 || len(w.ran) != 6 {
		t.Errorf("%d and %d steps counted, %q ran; want 2, 4 and each once", first.Load(), second.Load(), w.ran)
	}
}

// TestPrepareFailsInItsStage: a compile of the second stage that fails early
// leaves the first one alone and is reported by the second, with its cause.
func TestPrepareFailsInItsStage(t *testing.T) {
	t.Parallel()
	b := builder(t, t.TempDir(), run.System{}, 2, twoStages("echo 'a.c:1:1: error: unknown type' >&2; exit 1;")...)
	if err := b.Prepare(t.Context(), "second/wheel"); err != nil {
		t.Fatal(err)
	}
	makeIt(t, b, "first/link")
	_, err := b.Make(t.Context(), "second/wheel", func() {})
	p, ok := errors.AsType[*report.Problem](err)
	if !ok || p.Code != report.BuildFailed || !strings.Contains(err.Error(), plan.Stage2) || !strings.Contains(p.Tail, "unknown type") {
		t.Errorf("got %v, want a failure of stage 2 with the compiler's words", err)
	}
}

// TestPrepareStops: a builder that is closed waits for nothing.
func TestPrepareStops(t *testing.T) {
	t.Parallel()
	start := time.Now()
	b := builder(t, t.TempDir(), run.System{}, 2, twoStages("sleep 60")...)
	if err := b.Prepare(t.Context(), "second/wheel"); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil || time.Since(start) > 30*time.Second {
		t.Errorf("closed after %v: %v", time.Since(start), err)
	}
}

// TestPrepareOfWhatIsThere begins nothing, whatever else is gone.
func TestPrepareOfWhatIsThere(t *testing.T) {
	t.Parallel()
	prefix := t.TempDir()
	makeIt(t, builder(t, prefix, run.System{}, 2, twoStages("echo x")...), "second/wheel")
	steps := twoStages("echo x")
	for i := range steps[:5] {
		steps[i].Fingerprint = fingerprint("gone", steps[i].ID)
	}
	var w watch
	b := builder(t, prefix, &w, 2, steps...)
	if err := b.Prepare(t.Context(), "second/wheel"); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil || len(w.ran) != 0 {
		t.Errorf("%v, ran %q; want nothing", err, w.ran)
	}
}
