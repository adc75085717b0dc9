package main

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/invar-ops/invar/internal/testkit/simserver"
)

// TestVerify runs invar verify as users do, against simulated servers that
// listen on the loopback.
func TestVerify(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:           "testdata/verify",
		UpdateScripts: *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "schema": schemaCheck, "serve": serveCommand, "exists-not": existsNot,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("INVAR_HOME", e.WorkDir+"/home")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("NO_COLOR", "1")
			e.Setenv("no_proxy", "127.0.0.1")
			for _, v := range []string{"INVAR_API_KEY", "OPENAI_API_KEY", "INVAR_BATCH_INVARIANT", "VLLM_PLUGINS"} {
				e.Setenv(v, "")
			}
			return nil
		},
	})
}

// serveCommand starts a simulated server for the rest of the script and puts
// its URL into a variable: serve URL [tls] [key=K] [engines=N] [busy=N] [lifetime=N] [step=MS] [sglang] [DEFECT...].
func serveCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: serve VARIABLE [tls] [key=K] [engines=N] [DEFECT...]")
	}
	c := simserver.Config{Seed: 1}
	tls := false
	for _, a := range args[1:] {
		name, value, _ := strings.Cut(a, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case "tls":
			tls = true
		case "key":
			c.Key = value
		case "engines":
			c.Engines = n
		case "busy":
			c.Busy = n
		case "sglang":
			c.SGLang = true
		case "step":
			c.Step = time.Duration(n) * time.Millisecond
		case "lifetime":
			c.Lifetime = uint64(n) //nolint:gosec // small
		default:
			c.Defects = append(c.Defects, simserver.Defect(a))
		}
	}
	s := httptest.NewUnstartedServer(simserver.New(c))
	if tls {
		s.StartTLS()
		ts.Check(os.WriteFile(ts.MkAbs("ca.pem"), pemOf(s.Certificate().Raw), 0o644))
	} else {
		s.Start()
	}
	ts.Setenv(args[0], s.URL)
	ts.Defer(s.Close)
}

// existsNot wants that nothing matches a pattern.
func existsNot(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: exists-not PATTERN")
	}
	found, err := filepath.Glob(ts.MkAbs(args[0]))
	ts.Check(err)
	if len(found) > 0 {
		ts.Fatalf("there is %v", found)
	}
}

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
