package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/runpkg"
	"github.com/invar-ops/invar/internal/wheel"
)

// TestManage runs status, rollback, uninstall and gc on real installations of
// small bundles into Pythons that are folders only: none of these commands
// starts one.
func TestManage(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/manage",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "schema": schemaCheck, "install": installSmall, "within": within,
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("INVAR_HOME", e.WorkDir+"/home")
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("NO_COLOR", "1")
			e.Setenv("VIRTUAL_ENV", "")
			return nil
		},
	})
}

// installSmall installs a small bundle: install PYTHON MARK [--replace].
func installSmall(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: install PYTHON MARK [--replace]")
	}
	ctx := context.Background()
	dir := ts.MkAbs("bundle-" + args[1])
	ts.Check(os.MkdirAll(dir, 0o755))
	run := filepath.Join(dir, "invar-ops-cpu-1.0.0-linux.x86_64.run")
	_, err := runpkg.Write(ctx, run, runpkg.Spec{
		Manifest: runpkg.Manifest{Name: "invar-ops-cpu", Version: "1.0.0", Platform: "linux.x86_64"},
		Tree:     fstest.MapFS{"lib/libinvar_cpu.so": {Data: []byte(args[1])}},
	})
	ts.Check(err)
	w, err := wheel.Write(ctx, dir, wheel.Project{Name: install.Package, Version: "1.0.0"},
		[]wheel.Layer{{FS: fstest.MapFS{"__init__.py": {Data: []byte(args[1])}}, From: ".", To: install.Package}},
		wheel.Tag{Python: "py3", ABI: "none", Platform: "any"})
	ts.Check(err)
	root := ts.MkAbs(args[0])
	site := filepath.Join(root, "lib", "python3.11", "site-packages")
	ts.Check(os.MkdirAll(site, 0o755))
	p, err := install.Open(ts.Getenv("INVAR_HOME"))
	ts.Check(err)
	_, err = p.Apply(ctx, install.Request{
		Bundle:  install.Bundle{Target: "cpu", Flavour: "cpu", Contract: "invar-cpu-fp32/1"},
		Python:  python.Python{Exe: filepath.Join(root, "bin", "python"), Version: "3.11.7", Prefix: root, Purelib: site, Paths: []string{site}},
		Replace: len(args) > 2, Invar: "test",
	}, run, w.Path)
	ts.Check(err)
}

// within runs a command at most so long: within 1s invar status.
func within(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: within DURATION COMMAND...")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	start := time.Now()
	ts.Check(ts.Exec(args[1], args[2:]...))
	if d := time.Since(start); d > limit {
		ts.Fatalf("%v took %v, at most %v is allowed", args[1:], d, limit)
	}
}
