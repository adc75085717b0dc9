package build

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// How drivers tell that the kernel killed the program that did the work, as
// printed by nvcc 13.2, gcc 12, clang 14 and a shell.
var deaths = map[string]string{
	"itself":   `kill -9 $$`,
	"of nvcc":  `echo "nvcc error   : 'cicc' died due to signal 9 (Kill signal)" >&2; exit 9`,
	"of gcc":   `echo 'c++: fatal error: Killed signal terminated program cc1plus' >&2; exit 1`,
	"of clang": `echo 'clang: error: unable to execute command: Killed' >&2; exit 254`,
	"of sh":    `sh -c 'kill -9 $$'; exit $?`,
	"of make":  `echo Killed >&2; exit 137`,
}

// TestKilledOnceGoesOnWithFewer: a compile that was killed among others runs
// again with half as many, and the build ends well.
func TestKilledOnceGoesOnWithFewer(t *testing.T) {
	t.Parallel()
	for name, death := range deaths {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			marker := filepath.Join(t.TempDir(), "killed")
			once := "if [ ! -e " + marker + " ]; then : >" + marker + "; " + death + "; fi; : >o/a"
			steps := []plan.Step{
				shell("a", "", once, []string{"o/a"}),
				shell("b", "", ": >o/b", []string{"o/b"}),
				shell("link", "", ": >o/lib", []string{"o/lib"}, "a", "b"),
			}
			var w watch
			b := builder(t, t.TempDir(), &w, 4, steps...)
			var notes []string
			b.note = func(s string) { notes = append(notes, s) }
			makeIt(t, b, "link")
			if len(w.ran) != 4 || len(notes) != 1 || !strings.Contains(notes[0], "a was killed") || !strings.Contains(notes[0], "2 at a time") {
				t.Errorf("ran %q, notes %q; want one more run with 2 at a time", w.ran, notes)
			}
		})
	}
}

// TestKilledAloneIsFinal: with nothing beside it there is nothing left to give.
func TestKilledAloneIsFinal(t *testing.T) {
	t.Parallel()
	for _, jobs := range []int{1, 3} {
		for name, death := range deaths {
			var w watch
			b := builder(t, t.TempDir(), &w, jobs, shell("bad", "", death, []string{"o/bad"}), shell("link", "", ": >o/lib", []string{"o/lib"}, "bad"))
			_, err := b.Make(t.Context(), "link", func() {})
			p, ok := errors.AsType[*report.Problem](err)
			if !ok || p.Code != report.BuildFailed || !strings.Contains(p.Cause, "memory") || !strings.Contains(p.Hint, "memory") {
				t.Errorf("%s, %d jobs: got %v; want exit code 4 and memory as the cause", name, jobs, err)
			}
			if want := map[int]int{1: 1, 3: 3}[jobs]; len(w.ran) != want {
				t.Errorf("%s, %d jobs: ran %d times, want %d (%d, half, alone)", name, jobs, len(w.ran), want, jobs)
			}
		}
	}
}

// An error of the compiler is never tried again.
func TestOtherFailuresAreNotTriedAgain(t *testing.T) {
	t.Parallel()
	for _, script := range []string{
		"echo \"a.cu(3): error: identifier \\\"Killed\\\" is undefined\" >&2; exit 2",
		"exit 9",
		"kill -15 $$",
	} {
		var w watch
		b := builder(t, t.TempDir(), &w, 4, shell("bad", "", script, []string{"o/bad"}))
		if _, err := b.Make(t.Context(), "bad", func() {}); err == nil || len(w.ran) != 1 || killed(err) {
			t.Errorf("%s: ran %d times, %v", script, len(w.ran), err)
		}
	}
	if killed(&run.Error{Result: run.Result{Stderr: []byte("Killed\n")}}) {
		t.Error("a process that ended with 0 was not killed")
	}
}
