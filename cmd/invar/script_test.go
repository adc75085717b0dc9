package main

import (
	"flag"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/invar-ops/invar/internal/testkit/simserver"
)

var update = flag.Bool("update", false, "rewrite golden files and docs/reference")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"invar":    func() { os.Exit(mainCode()) },
		"simserve": func() { os.Exit(simserver.Main(os.Args[1:])) },
	})
}

// TestScript runs the command as users do: every refusal, hint and exit code
// has a line in testdata/script.
func TestScript(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/script",
		UpdateScripts: *update,
		Condition:     torchCondition,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "schema": schemaCheck, "venv": venvCommand,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("INVAR_HOME", e.WorkDir+"/home")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("NO_COLOR", "1")
			return nil
		},
	})
}

func testShort() bool { return testing.Short() }

// code runs the rest as a command and wants its exit code: `code 2 invar build --jobs x`.
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND...")
	}
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if err != nil {
		got = exitText(err)
	}
	if got != args[0] {
		ts.Fatalf("%v: exit code %s, want %s", args[1:], got, args[0])
	}
}
