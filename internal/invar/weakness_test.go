package invar

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// The numbers are those of the list of weaknesses of the script that this
// build replaces. Those of source trees (20 to 22, 24 and 25) are tested in
// internal/lookalike, where each number has both sides.

// A watcher passes processes on and remembers what was started.
type watcher struct {
	run.Runner
	mu   sync.Mutex
	seen []string
}

func (w *watcher) Run(ctx context.Context, cmd run.Cmd) (run.Result, error) {
	w.mu.Lock()
	w.seen = append(w.seen, cmd.String()+" MAX_JOBS="+run.Getenv(cmd.Env, "MAX_JOBS"))
	w.mu.Unlock()
	return w.Runner.Run(ctx, cmd)
}

// tools is a PATH with what a compiler and a shell script need, without curl,
// unzip, pip and git, and with a python3 that is the wrong one.
func tools(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{
		"bash", "sh", "env", "cat", "cp", "mkdir", "rm", "ls", "chmod", "grep", "sed", "cut", "tr", "touch", "date", "dirname", "uname",
		"c++", "g++", "gcc", "cc", "ld", "as", "ar", "which", "tar", "gzip", "make", "ninja",
	} {
		if p, err := run.LookPath(name, os.Environ()); err == nil {
			if err := os.Symlink(p, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"python3", "python", "pip3", "pip", "curl", "unzip", "git"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho wrong $0 >&2\nexit 99\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// One build from a server that breaks off and is busy, on a machine without
// the tools that the script needs, with settings that mislead it.
func TestWeaknessesOfTheScript(t *testing.T) {
	r := newRig(t, cann.Options{})
	w := &watcher{Runner: run.System{}}
	r.Runner = w
	o := r.options(t, cann.Package{Version: "2.0.0"})
	pkg := o.Release.RunPackage
	server := cann.Serve(t, map[string]cann.Fault{filepath.Base(pkg): cann.DropsOnce}, pkg)
	o.Release.RunPackage, o.Release.Mirrors, o.Release.CAFiles = "", []string{server.URL + "/any/folder"}, []string{server.CA}
	o.SoC = "Ascend910B4"
	r.Env = run.Setenv(r.Env, "PATH", tools(t))
	r.Env = run.Setenv(r.Env, "COMPILE_CUSTOM_KERNELS", "0")
	r.Env = run.Setenv(r.Env, "MAX_JOBS", "999")
	put(t, filepath.Join(o.Release.Extension, "build", "lib", "stale.py"), "stale")
	put(t, filepath.Join(o.Release.Extension, "dist", "old-1.0-py3-none-any.whl"), "old")
	before, dists := r.snapshot(t), python.Dists(r.py.Purelib)
	cwd, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	res, err := r.Build(t.Context(), o)
	if err != nil {
		t.Fatal(explain(err))
	}
	rec := res.Receipt
	all := strings.Join(w.seen, "\n")
	has := func(name string, ok bool, got ...any) {
		t.Run(name, func(t *testing.T) {
			if !ok {
				t.Error(got...)
			}
		})
	}
	asked := strings.Join(server.Requests(), "\n")
	has("04 goes on where the connection broke", strings.Contains(asked, "bytes="), asked)
	now, _ := os.ReadDir(".")
	has("10 the working folder is left alone", len(now) == len(cwd), now)
	after := slices.DeleteFunc(r.snapshot(t), func(f string) bool { return strings.HasSuffix(f, install.HookName) })
	has("11 CANN's tree and the user's home are not written", slices.Equal(before, after), len(before), len(after))
	has("13 checked after the installation", res.Probe != nil && res.Probe.Proved >= 1, res.Probe)
	has("15 a mirror serves", strings.Contains(asked, "/any/folder/"), asked)
	has("16 neither curl nor unzip is needed", !strings.Contains(all, "curl") && !strings.Contains(all, "unzip"), all)
	has("17 the chosen Python builds", strings.Contains(all, r.py.Exe) && !strings.Contains(all, "pip"), all)
	has("18 nothing but the wheel comes in", slices.Equal(dists, python.Dists(r.py.Purelib)), python.Dists(r.py.Purelib))
	has("19 SOC_VERSION is normalised", rec.Release.SoC == "ascend910b4", rec.Release.SoC)
	has("23 torch_npu is found without pip", rec.Python.Torch != "", rec.Python)
	has("25 what an older build left is not used", !hasFile(rec, "stale.py"), rec.Files)
	has("26 jobs follow memory, not the variable", buildsWith(w.seen) != "" && buildsWith(w.seen) != "999", w.seen)
	has("29 operators do not depend on COMPILE_CUSTOM_KERNELS", rec.RunPackage.SHA256 == digest(t, pkg), rec.RunPackage)
	t.Run("12 rollback and uninstall", func(t *testing.T) {
		p, err := install.Open(r.Prefix)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Uninstall(t.Context(), install.UninstallOptions{}); err != nil {
			t.Fatal(err)
		}
		if after := r.snapshot(t); !slices.Equal(before, after) {
			t.Error("something is left")
		}
	})
}

// buildsWith is MAX_JOBS of the process that built the wheel.
func buildsWith(seen []string) string {
	for _, s := range seen {
		if strings.Contains(s, "invar_wheel") {
			_, jobs, _ := strings.Cut(s, " MAX_JOBS=")
			return jobs
		}
	}
	return ""
}

func hasFile(r install.Receipt, name string) bool {
	return slices.ContainsFunc(r.Files, func(f install.File) bool { return filepath.Base(f.Path) == name })
}

// What the script takes in spite of everything is refused, says why, and
// leaves no trace; none of it ends with 0.
func TestWeaknessesThatAreRefused(t *testing.T) {
	r := newRig(t, cann.Options{})
	w := &watcher{Runner: run.System{}}
	r.Runner = w
	from := func(o *Options, fault cann.Fault) *cann.Server {
		s := cann.Serve(t, map[string]cann.Fault{filepath.Base(o.Release.RunPackage): fault}, o.Release.RunPackage)
		o.Release.Mirrors, o.Release.CAFiles, o.Release.RunPackage = []string{s.URL}, []string{s.CA}, ""
		return s
	}
	for _, tc := range []struct {
		name   string
		pkg    cann.Package
		change func(*Options)
		says   string
	}{
		{"01 a server that nobody vouches for", cann.Package{}, func(o *Options) { from(o, cann.Good); o.Release.CAFiles = nil }, "certificate"},
		{"02 content with another digest", cann.Package{}, func(o *Options) { from(o, cann.WrongContent) }, "not the content that is pinned"},
		{"03 an error page", cann.Package{}, func(o *Options) { from(o, cann.ErrorPage) }, "an HTML page"},
		{"05 and 06 stage 1 fails, and so does the command", cann.Package{Variant: cann.FailsToInstall}, nil, "copy new op_api files failed"},
		{"08 an operator package of another CANN", cann.Package{CANN: "9.0.0"}, func(o *Options) { o.Release.Skew = false }, ""},
		{"09 an old name with new content", cann.Package{}, func(o *Options) {
			o.Release.Lock = filepath.Join(t.TempDir(), "invar.lock")
			put(t, o.Release.Lock, "schema: 1\nfiles:\n  - {name: "+filepath.Base(o.Release.RunPackage)+", sha256: "+strings.Repeat("ab", 32)+", size: 1, from: x}\n")
			o.Release.Accept = nil
		}, "nobody has accepted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.pkg.Version = "2.0.0"
			o := r.options(t, tc.pkg)
			if tc.change != nil {
				tc.change(&o)
			}
			before := r.snapshot(t)
			w.seen = nil
			_, err := r.Build(t.Context(), o)
			if report.ExitCode(err) == report.Done || !strings.Contains(explain(err), tc.says) {
				t.Errorf("exit %d: %s", report.ExitCode(err), explain(err))
			}
			if !slices.Equal(before, r.snapshot(t)) {
				t.Error("something changed")
			}
			if strings.Contains(strings.Join(w.seen, "\n"), "invar_wheel") {
				t.Error("stage 2 was begun")
			}
		})
	}
	t.Run("07 a SoC without operators", func(t *testing.T) {
		for _, name := range []string{"ascend310p", "ascend310p3", "ascend910a"} {
			if _, err := target.Find(name); report.ExitCode(err) != report.Unmet {
				t.Errorf("%s: got %v", name, err)
			}
		}
	})
	t.Run("14 two at once", func(t *testing.T) {
		lock, err := store.Acquire(t.Context(), r.Prefix, store.LockOptions{Command: "another build"})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = lock.Release() }()
		o := r.options(t, cann.Package{})
		o.NoWait = true
		if _, err := r.Build(t.Context(), o); err == nil || errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}
