package invar

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/pins"
	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/released"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// A rig is a machine with the look-alike CANN, a Python of its own with the
// real torch_npu, and a prefix.
type rig struct {
	Session
	tree *cann.Tree
	py   python.Python
}

func newRig(t *testing.T, o cann.Options) rig {
	t.Helper()
	py, err := testkit.Private(testkit.Need(t, cann.Environment), filepath.Join(t.TempDir(), "py"))
	if err != nil {
		t.Fatal(err)
	}
	r := rig{tree: cann.New(t, o), py: py}
	env := run.Setenv(r.tree.Bare(), "HOME", t.TempDir())
	// No test asks a server outside this machine: there is no such proxy.
	env = run.Setenv(env, "https_proxy", "http://127.0.0.1:9")
	r.Session = Session{
		Prefix: filepath.Join(t.TempDir(), "home"), Env: env,
		Runner: run.System{}, Progress: report.Discard, Version: "test",
	}
	return r
}

// project is a source tree of the wheel that hands out a wheel of the real
// project, compiled once for all tests.
func project(t *testing.T, version string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "batch_invariant_ops")
	built := cann.Wheel(t, version, cann.ExecExt)
	put(t, filepath.Join(dir, "batch_invariant_ops", "__init__.py"), "")
	put(t, filepath.Join(dir, "pyproject.toml"), "[build-system]\nrequires = []\nbuild-backend = \"copied\"\nbackend-path = [\".\"]\n")
	put(t, filepath.Join(dir, "copied.py"), "import os, shutil\ndef build_wheel(out, config_settings=None, metadata_directory=None):\n"+
		"    assert 'ASCEND_HOME_PATH' in os.environ, 'no CANN here'\n    return os.path.basename(shutil.copy("+strconv.Quote(built)+", out))\n")
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func digest(t *testing.T, file string) string {
	t.Helper()
	sum, _, err := store.Digest(context.Background(), file)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func (r rig) options(t *testing.T, p cann.Package) Options {
	t.Helper()
	file := cann.RunPackage(t, p)
	target := p.SoC
	if target == "" {
		target = "ascend910b"
	}
	return Options{Target: target, Python: r.py.Exe, Release: ReleaseOptions{
		RunPackage: file, Extension: project(t, "1.0.0"), CANN: r.tree.Home, Accept: []string{digest(t, file)}, Skew: true, Installer: "script",
	}}
}

// snapshot lists everything outside the prefix that a build could touch.
func (r rig) snapshot(t *testing.T) []string {
	t.Helper()
	out := cann.Files(t, r.tree.Root)
	for _, f := range cann.Files(t, r.py.Purelib) {
		if !strings.Contains(f, "__pycache__") {
			out = append(out, f)
		}
	}
	home := run.Getenv(r.Env, "HOME")
	for _, f := range cann.Files(t, home) {
		if !strings.Contains(f, ".cache") && !strings.Contains(f, ".local") && !strings.Contains(f, "ascend") {
			out = append(out, f)
		}
	}
	return out
}

// Every SoC goes through both stages, is up to date afterwards, and goes away
// without a trace. Nothing outside the prefix changes but the hook.
func TestReleaseChain(t *testing.T) {
	for _, tc := range []struct {
		pkg cann.Package
		soc string
	}{
		{cann.Package{}, "Ascend910B4"},
		{cann.Package{SoC: "ascend910_93", Patched: true, Version: "2.0.0"}, "Ascend910_9391"},
		{cann.Package{SoC: "ascend950", Version: "2.0.0", Vendor: "custom_batchinvariant"}, "Ascend950PR_9579"},
	} {
		t.Run(firstOf(tc.pkg.SoC, "ascend910b"), func(t *testing.T) {
			r := newRig(t, cann.Options{SoC: tc.soc})
			before := r.snapshot(t)
			o := r.options(t, tc.pkg)
			res, err := r.Build(t.Context(), o)
			if err != nil {
				t.Fatal(explain(err))
			}
			rec := res.Receipt
			if rec.Release == nil || rec.Release.CANN != r.tree.Home || rec.Flavour != "ascend" || rec.Release.Compiled != "9.1.0" {
				t.Errorf("receipt: %+v", rec.Release)
			}
			if _, err := os.Stat(filepath.Join(rec.VendorDir(), "op_api/lib/libcust_opapi.so")); err != nil {
				t.Error(err)
			}
			b, err := os.ReadFile(filepath.Join(rec.VendorDir(), "bin/set_env.bash"))
			if err != nil || !strings.Contains(string(b), rec.VendorDir()+":") {
				t.Errorf("set_env.bash does not name its final place: %s, %v", b, err)
			}
			r.usable(t, rec)
			r.outside(t, rec)
			r.unchanged(t, o, rec)
			p, err := install.Open(r.Prefix)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Uninstall(t.Context(), install.UninstallOptions{Also: []string{"work", "cache", pins.LockName}}); err != nil {
				t.Fatal(err)
			}
			if after := r.snapshot(t); !slices.Equal(before, after) {
				t.Errorf("left behind or gone: %d entries before, %d after", len(before), len(after))
			}
		})
	}
}

// usable runs an operator of the installation on the simulated device, in the
// environment of invar exec, and fails an import without it.
func (r rig) usable(t *testing.T, rec install.Receipt) {
	t.Helper()
	env, err := released.Of(t.Context(), r.Runner, rec, "", r.Env)
	if err != nil {
		t.Fatal(err)
	}
	const call = "import torch, torch_npu, batch_invariant_ops\n" +
		"print(torch.ops.batch_invariant_ops.npu_mm_batch_invariant(torch.ones(2, 3).npu(), torch.ones(3, 2).npu()).cpu().sum().item())"
	res, err := r.Runner.Run(t.Context(), run.Cmd{Argv: []string{rec.Python.Exe, "-c", call}, Env: env.Apply(r.Env, rec), Dir: "/"})
	if err != nil || !strings.Contains(string(res.Stdout), "12.0") {
		t.Errorf("an operator: %v\n%s%s", err, res.Stdout, res.Stderr)
	}
	for _, v := range released.Changes(r.Env, env.Apply(r.Env, rec)) {
		if strings.Contains(":"+v.Value+":", "::") {
			t.Errorf("%s has an empty entry: %q", v.Name, v.Value)
		}
	}
	bare := run.Setenv(r.Env, "TORCH_DEVICE_BACKEND_AUTOLOAD", "0")
	res, err = r.Runner.Run(t.Context(), run.Cmd{Argv: []string{rec.Python.Exe, "-c", "import os; print(os.environ['ASCEND_CUSTOM_OPP_PATH'])\nimport batch_invariant_ops"}, Env: bare, Dir: "/"})
	if err == nil || !strings.Contains(string(res.Stderr), "invar exec") || strings.TrimSpace(string(res.Stdout)) != rec.VendorDir() {
		t.Errorf("without CANN's environment: %v\n%s%s", err, res.Stdout, res.Stderr)
	}
}

// unchanged builds again: nothing may be started.
func (r rig) unchanged(t *testing.T, o Options, rec install.Receipt) {
	t.Helper()
	s := r.Session
	s.Runner = nothing{t}
	o.Release.Accept = nil // the lock remembers
	start := time.Now()
	again, err := s.Build(t.Context(), o)
	if err != nil || !again.UpToDate || again.Receipt.Generation != rec.Generation {
		t.Errorf("again: %+v, %v", again, explain(err))
	}
	t.Logf("unchanged build: %s", time.Since(start))
	for name, change := range map[string]func(*Options){
		"another package": func(o *Options) {
			o.Release.RunPackage = cann.RunPackage(t, cann.Package{SoC: rec.Target, Version: "3.0.0"})
		},
		"the wheel's sources": func(o *Options) {
			o.Release.Extension = project(t, "1.0.0")
			put(t, filepath.Join(o.Release.Extension, "batch_invariant_ops", "more.py"), "")
		},
		"the installer": func(o *Options) { o.Release.Installer = "copy" },
		"into CANN":     func(o *Options) { o.Release.IntoCANN = true },
	} {
		c := o
		change(&c)
		p, err := s.Plan(t.Context(), c)
		if err != nil || p.Fingerprint == rec.Fingerprint {
			t.Errorf("%s changed and the fingerprint did not: %v", name, explain(err))
		}
	}
}

// nothing is a Runner for work that starts no process.
type nothing struct{ t *testing.T }

func (n nothing) Run(_ context.Context, cmd run.Cmd) (run.Result, error) {
	n.t.Errorf("started %s", cmd)
	return run.Result{}, errors.New("no process was to be started")
}

// explain shows all of a problem.
func explain(err error) string {
	if p, ok := errors.AsType[*report.Problem](err); ok {
		return strings.Join([]string{p.Error(), "want " + p.Want, "got " + p.Got, p.Hint, p.Tail, p.State}, "\n")
	}
	if u, ok := errors.AsType[*report.UnmetError](err); ok {
		var out []string
		for _, r := range u.Unmet() {
			out = append(out, r.Name+": want "+r.Want+", got "+r.Got+"; "+r.Hint)
		}
		return strings.Join(out, "\n")
	}
	if err == nil {
		return ""
	}
	return err.Error()
}

// What does not fit is refused before anything changes, with the exit code of its class.
func TestReleaseRefusals(t *testing.T) {
	r := newRig(t, cann.Options{})
	for _, tc := range []struct {
		name   string
		pkg    cann.Package
		change func(*Options)
		code   int
		says   string
	}{
		{"another SoC inside", cann.Package{Variant: cann.OtherSoC}, nil, report.Unmet, "kernels for ascend910_93"},
		{"another SoC by name", cann.Package{SoC: "ascend950"}, func(o *Options) { o.Target = "ascend910b" }, report.Unmet, "kernels for ascend950"},
		{"another machine inside", cann.Package{Variant: cann.OtherMachine}, nil, report.Unmet, "architecture of the run package"},
		{"another CANN", cann.Package{CANN: "8.5.1"}, func(o *Options) { o.Release.Skew = false }, report.Unmet, ""},
		{"another vendor", cann.Package{Vendor: "custom_transformer"}, nil, report.Unmet, "vendor of the run package"},
		{"cut off", cann.Package{Variant: cann.Truncated}, nil, report.BuildFailed, ""},
		{"an HTML page", cann.Package{Variant: cann.HTMLPage}, nil, report.Failed, "an HTML page"},
		{"content that nobody accepted", cann.Package{}, func(o *Options) { o.Release.Accept = nil }, report.Unmet, "--accept-digest sha256:"},
		{"content of both files that nobody accepted", cann.Package{}, func(o *Options) {
			o.Release.Extension = cann.Stage2Zip(t, "", "1.0.0", cann.ExecExt)
			o.Release.Accept = nil
		}, report.Unmet, "of 2 files"},
		{"SOC_VERSION of another target", cann.Package{}, func(o *Options) { o.SoC = "ascend950dt_9582" }, report.Unmet, "does not belong"},
		{"no CANN", cann.Package{}, func(o *Options) { o.Release.CANN = "" }, report.Unmet, "none found"},
		{"a script that writes outside", cann.Package{Variant: cann.WritesOutside}, nil, report.BuildFailed, "escaped"},
		{"a script that fails", cann.Package{Variant: cann.FailsToInstall}, nil, report.BuildFailed, "copy new op_api files failed"},
		{"sources that do not build", cann.Package{}, func(o *Options) {
			dir := t.TempDir()
			put(t, filepath.Join(dir, "batch_invariant_ops", "setup.py"), "raise SystemExit('no ninja')")
			o.Release.Extension = dir
		}, report.BuildFailed, "no ninja"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := r.snapshot(t)
			o := r.options(t, tc.pkg)
			if tc.change != nil {
				tc.change(&o)
			}
			_, err := r.Build(t.Context(), o)
			if code := report.ExitCode(err); code != tc.code && (tc.code != report.Failed || code != report.BuildFailed) {
				t.Errorf("exit %d, want %d\n%s", code, tc.code, explain(err))
			}
			if !strings.Contains(explain(err), tc.says) {
				t.Errorf("%q is not said:\n%s", tc.says, explain(err))
			}
			if after := r.snapshot(t); !slices.Equal(before, after) {
				t.Errorf("something outside the prefix changed")
			}
			if gens, _ := filepath.Glob(filepath.Join(r.Prefix, "env", "*", "gen", "*")); len(gens) != 0 {
				t.Errorf("left %v", gens)
			}
			if work, _ := filepath.Glob(filepath.Join(r.Prefix, "work", "*")); len(work) != 0 {
				t.Errorf("left %v", work)
			}
		})
	}
}

// stopper ends the build when a process whose command holds mark is started.
type stopper struct {
	run.Runner
	mark string
	stop context.CancelFunc
}

func (s stopper) Run(ctx context.Context, cmd run.Cmd) (run.Result, error) {
	if strings.Contains(cmd.String(), s.mark) {
		s.stop()
	}
	return s.Runner.Run(ctx, cmd)
}

// An interrupt at any process leaves nothing outside the prefix, no half
// generation and no scratch folder, and is told as one.
func TestReleaseInterrupted(t *testing.T) {
	r := newRig(t, cann.Options{})
	o := r.options(t, cann.Package{})
	for _, mark := range []string{"set_env.sh", "./install.sh", "invar_wheel"} {
		before := r.snapshot(t)
		ctx, cancel := context.WithCancel(t.Context())
		s := r.Session
		s.Runner = stopper{r.Runner, mark, cancel}
		if _, err := s.Build(ctx, o); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", mark, explain(err))
		}
		cancel()
		if !slices.Equal(before, r.snapshot(t)) {
			t.Errorf("%s: something outside the prefix changed", mark)
		}
		for _, pattern := range []string{"env/*/gen/*", "env/*/current", "work/*"} {
			if left, _ := filepath.Glob(filepath.Join(r.Prefix, pattern)); len(left) != 0 {
				t.Errorf("%s: left %v", mark, left)
			}
		}
	}
}

// A full disk is said to be one, at whatever step it shows.
func TestReleaseFullDisk(t *testing.T) {
	r := newRig(t, cann.Options{})
	o := r.options(t, cann.Package{})
	small := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(small, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, kb := range []string{"16", "120", "200", "300"} {
		if err := unix.Mount("none", small, "tmpfs", 0, "size="+kb+"k"); err != nil {
			t.Skip("needs the right to mount: ", err)
		}
		s := r.Session
		s.Prefix = filepath.Join(small, "home")
		before := r.snapshot(t)
		_, err := s.Build(t.Context(), o)
		if err == nil || !strings.Contains(explain(err), "full") && !strings.Contains(explain(err), "space") {
			t.Errorf("%s kB: got %s", kb, explain(err))
		}
		if !slices.Equal(before, r.snapshot(t)) {
			t.Errorf("%s kB: something outside the prefix changed", kb)
		}
		if err := unix.Unmount(small, 0); err != nil {
			t.Fatal(err)
		}
	}
}
