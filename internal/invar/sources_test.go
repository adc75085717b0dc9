package invar

import (
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/targets"
)

func TestIncludes(t *testing.T) {
	t.Parallel()
	text := "#include \"a.h\"\n  #  include<vector> // why\n// #include \"not.h\"\n#include HEADER\n#define x \"include\"\n\t#include \\\n \"cut.h\"\n#include_next <s.h>\r\n"
	if got, want := includes(text), []string{"a.h", "vector", "", "", "s.h"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestInputsHoldWhatTheCompilerReads asks the compiler itself (-MM) which
// files of ours each compile of the plan reads.
func TestInputsHoldWhatTheCompilerReads(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: starts the compiler for each source")
	}
	py := testkit.Need(t, testkit.Latest)
	s := Session{Prefix: t.TempDir(), Env: os.Environ(), Runner: run.System{}, Version: "1.0.0", Progress: report.Discard}
	p, err := s.Plan(t.Context(), Options{Target: "cpu", Python: py.Exe})
	if err != nil {
		t.Skip(err)
	}
	work := t.TempDir()
	if err := os.CopyFS(path.Join(work, "src"), targets.FS); err != nil {
		t.Fatal(err)
	}
	var compiles, fewer int
	for _, st := range p.Steps {
		at := slices.Index(st.Argv, "-c")
		if st.Kind != plan.Run || at < 0 {
			continue
		}
		compiles++
		argv := append(slices.Clone(st.Argv[:at]), "-MM", st.Argv[at+1])
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir = work
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", st.ID, err)
		}
		var listed []string
		for _, in := range st.Inputs {
			listed = append(listed, in.Name)
		}
		for name := range strings.FieldsSeq(string(out)) {
			if name = path.Clean(name); strings.HasPrefix(name, "src/") && !slices.Contains(listed, name) {
				t.Errorf("%s: the compiler reads %s, which is no input", st.ID, name)
			}
		}
		if !slices.Contains(listed, "src/cpu/kernels/vec_neon.h") {
			fewer++
		}
	}
	if compiles < 10 || fewer == 0 {
		t.Errorf("%d compiles were looked at, %d of them without a header that they do not need; want at least 10 and some", compiles, fewer)
	}
}
