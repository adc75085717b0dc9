package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/probe"
	"github.com/invar-ops/invar/internal/report"
)

// TestShowProbe wants each check that did not pass with all that it says, and
// nothing about the others.
func TestShowProbe(t *testing.T) {
	t.Parallel()
	res := probe.Result{
		Target: "cpu", Generation: 3, Python: "/p/bin/python", Asked: 7, Proved: 1,
		Levels: []probe.Level{{Level: 1, Name: "files", Status: report.Pass}, {Level: 2, Name: "import", Status: report.Fail}, {Level: 3, Name: "operators", Status: report.Skip, Reason: "level 2 (import) failed"}},
		Checks: []report.Check{
			{Level: 1, Name: "hidden", Status: report.Pass, Got: "fine"},
			{Level: 2, Name: "import", Status: report.Fail, Want: "a module", Got: "an error\nof two lines", Hint: "do this"},
			{Level: 3, Name: "operators", Status: report.Skip, Reason: "level 2 (import) failed"},
		},
		Summary: []string{"1 passed, 1 failed, 1 skipped", "level 2 (import) fail: import: an error"},
	}
	var b bytes.Buffer
	showProbe(&b, res)
	for _, want := range []string{
		"cpu, generation 3, /p/bin/python\n", "2 import             fail", "      want    a module\n", "      got     an error\n              of two lines\n",
		"      try     do this\n", "3 operators          skip          level 2 (import) failed\n", "proved to level 1 of 7\n1 passed, 1 failed, 1 skipped\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	for _, not := range []string{"hidden", "level 2 (import) fail: import"} {
		if strings.Contains(b.String(), not) {
			t.Errorf("%q in\n%s", not, b.String())
		}
	}
}

func TestWriteJUnit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "probe.xml")
	res := probe.Result{Levels: []probe.Level{{Level: 1, Name: "files", Status: report.Pass}}, Checks: []report.Check{{Level: 1, Name: "a", Status: report.Pass}}}
	junit := func(w io.Writer) error { return probe.WriteJUnit(w, res) }
	if err := writeFile("--junit", file, junit); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(b), `<testcase name="a"`) {
		t.Errorf("%s, %v", b, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := writeFile("--junit", filepath.Join(dir, "no", "such.xml"), junit); report.ExitCode(err) != report.Failed {
		t.Errorf("%v, want an error with code 1", err)
	}
}
