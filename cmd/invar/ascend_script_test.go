package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// TestAscendScript runs the commands on a machine with the look-alike CANN and
// the real torch_npu.
func TestAscendScript(t *testing.T) {
	if testShort() {
		t.Skip("the look-alike of CANN is left out of short runs")
	}
	shared := testkit.Need(t, cann.Environment)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/ascend", UpdateScripts: *update,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"code": code, "schema": schemaCheck},
		Setup: func(e *testscript.Env) error {
			tree := cann.New(t, cann.Options{Root: filepath.Join(e.WorkDir, "machine")})
			pkg := cann.RunPackage(t, cann.Package{Dir: e.WorkDir})
			sum, _, err := store.Digest(context.Background(), pkg)
			if err != nil {
				return err
			}
			py, err := testkit.Private(shared, filepath.Join(e.WorkDir, "py"))
			if err != nil {
				return err
			}
			for _, kv := range tree.Bare() {
				k, v, _ := strings.Cut(kv, "=")
				if k != "PATH" {
					e.Setenv(k, v)
				}
			}
			for k, v := range map[string]string{
				"INVAR_HOME": e.WorkDir + "/home", "HOME": e.WorkDir, "NO_COLOR": "1", "https_proxy": "http://127.0.0.1:9",
				"INVAR_PYTHON": py.Exe, "INVAR_CANN": tree.Home, "INVAR_RUN_PACKAGE": pkg, "INVAR_EXTENSION": e.WorkDir + "/project",
				"DIGEST": "sha256:" + sum, "OPP": tree.Opp,
			} {
				e.Setenv(k, v)
			}
			return handOut(e.WorkDir+"/project", cann.Wheel(t, "1.0.0", cann.ExecExt))
		},
	})
}

// handOut writes a project whose build hands out a wheel that was compiled before.
func handOut(dir, built string) error {
	if err := os.MkdirAll(filepath.Join(dir, "batch_invariant_ops"), 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"batch_invariant_ops/__init__.py": "",
		"pyproject.toml":                  "[build-system]\nrequires = []\nbuild-backend = \"copied\"\nbackend-path = [\".\"]\n",
		"copied.py":                       "import os, shutil\ndef build_wheel(out, config_settings=None, metadata_directory=None):\n    return os.path.basename(shutil.copy(" + strconv.Quote(built) + ", out))\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}
