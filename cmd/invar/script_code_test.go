package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func exitText(err error) string {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return strconv.Itoa(e.ExitCode())
	}
	return err.Error()
}

// schemaDir is docs/schema, whatever folder a script is in.
var schemaDir, _ = filepath.Abs("../../docs/schema")

// schemaCheck validates a file (stdout, mostly) against docs/schema/invar.<command>.schema.json,
// the command being what the object itself names.
func schemaCheck(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: schema FILE")
	}
	text := ts.ReadFile(args[0])
	var head struct{ Schema string }
	ts.Check(json.Unmarshal([]byte(text), &head))
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	ts.Check(err)
	s, err := jsonschema.NewCompiler().Compile(filepath.Join(schemaDir, head.Schema+".schema.json"))
	ts.Check(err)
	ts.Check(s.Validate(v))
}
