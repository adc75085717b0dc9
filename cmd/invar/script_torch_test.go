package main

import (
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/invar-ops/invar/internal/testkit"
)

// torchCondition is [torch]: the shared environment is there. In CI a missing
// one is an error, never a skip.
func torchCondition(cond string) (bool, error) {
	if cond != "torch" {
		return false, nil
	}
	if testShort() {
		return false, nil
	}
	_, err := testkit.Shared(testkit.Latest)
	if err != nil && os.Getenv("INVAR_CI") == "1" {
		return false, err
	}
	return err == nil, nil
}

// venvCommand makes an environment with torch: `venv DIR`.
func venvCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: venv DIR")
	}
	shared, err := testkit.Shared(testkit.Latest)
	ts.Check(err)
	_, err = testkit.Private(shared, ts.MkAbs(args[0]))
	ts.Check(err)
}
