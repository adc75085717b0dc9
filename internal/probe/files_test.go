package probe

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// compile runs the C++ compiler in dir.
func compile(t *testing.T, dir string, args ...string) {
	t.Helper()
	res, err := run.System{}.Run(t.Context(), run.Cmd{Argv: append([]string{"c++"}, args...), Dir: dir, Env: os.Environ()})
	if err != nil {
		t.Fatalf("%v\n%s", err, res.Stderr)
	}
}

// TestFiles damages an installation on disk in every way that level 1 is for.
func TestFiles(t *testing.T) {
	t.Parallel()
	good := makeBundle(t, "good")
	for _, c := range []struct {
		name, check, text string
		damage            func(*testing.T, *fixture)
		env               func(*testing.T) string
	}{
		{name: "deleted file", check: "receipt", text: "_loader.py: missing", damage: func(t *testing.T, i *fixture) {
			remove(t, i.path("site/batch_invariant_ops/_loader.py"))
		}},
		{name: "flipped byte in a kernel", check: "receipt", text: "libinvar_cpu.so: changed", damage: func(t *testing.T, i *fixture) {
			flip(t, i.path("ops/cpu/lib/libinvar_cpu.so"))
		}},
		{name: "flipped byte in a script", check: "RECORD", text: "batch_invariant_ops/_report.py: ", damage: func(t *testing.T, i *fixture) {
			flip(t, i.path("site/batch_invariant_ops/_report.py"))
		}},
		{name: "RECORD lacks a file", check: "RECORD", text: "_native.py: installed, but not in RECORD", damage: func(t *testing.T, i *fixture) {
			editRecord(t, i, func(line string) string {
				if strings.HasPrefix(line, "batch_invariant_ops/_native.py,") {
					return ""
				}
				return line
			})
		}},
		{name: "RECORD has a wrong size", check: "RECORD", text: "py.typed: 0 bytes", damage: func(t *testing.T, i *fixture) {
			editRecord(t, i, func(line string) string {
				if strings.HasPrefix(line, "batch_invariant_ops/py.typed,") {
					return line + "7"
				}
				return line
			})
		}},
		{name: "other architecture", check: "library libinvar_cpu.so", text: "is for aarch64", damage: func(t *testing.T, i *fixture) {
			path := i.path("ops/cpu/lib/libinvar_cpu.so")
			b := []byte(read(t, path))
			binary.LittleEndian.PutUint16(b[18:], 183) // e_machine EM_AARCH64
			write(t, path, string(b))
			i.reseal(t)
		}},
		{name: "not a library", check: "library lib_ops.so", text: "not an ELF file", damage: func(t *testing.T, i *fixture) {
			write(t, i.path("site/batch_invariant_ops/lib_ops.so"), "version https://git-lfs.github.com/spec/v1\n")
			i.reseal(t)
		}},
		{name: "needed library is missing", check: "library libinvar_cpu.so", text: "libnotthere.so.1, which ops/cpu/lib/libinvar_cpu.so needs, is not found", damage: func(t *testing.T, i *fixture) {
			linkAgainst(t, i, "libnotthere.so.1", "")
		}},
		{name: "newer glibc", check: "library libinvar_cpu.so", text: "GLIBC_2.99 is not in", damage: func(t *testing.T, i *fixture) {
			linkAgainst(t, i, "libc.so.6", "GLIBC_2.99 { future; };")
		}},
		{name: "hook removed", check: "hook", text: "invar.pth: hook", damage: func(t *testing.T, i *fixture) {
			remove(t, i.receipt.Hook.Path)
		}},
		{name: "hook of another prefix", check: "hook", text: "invar.pth: hook", damage: func(t *testing.T, i *fixture) {
			write(t, i.receipt.Hook.Path, "/somewhere/env/0123456789ab/current/site\n")
		}},
		{name: "copy in site-packages", check: "first on the path", text: "shadowed", damage: func(t *testing.T, i *fixture) {
			write(t, filepath.Join(i.py.Purelib, "batch_invariant_ops", "__init__.py"), "")
		}},
		{name: "copy on PYTHONPATH", check: "first on the path", text: "PYTHONPATH", env: func(t *testing.T) string {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "batch_invariant_ops", "__init__.py"), "")
			return "PYTHONPATH=" + dir
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			i := setUp(t, good)
			if c.damage != nil {
				c.damage(t, i)
			}
			var env []string
			if c.env != nil {
				env = append(env, c.env(t))
			}
			res, err := i.probe(t, Import, env...)
			want(t, res, err, Files, report.Fail, c.check, c.text)
			if l := res.Levels[Import-1]; l.Status != report.Skip || !strings.Contains(l.Reason, "level 1 (files) failed") {
				t.Errorf("level 2: %+v, want a skip that names level 1", l)
			}
		})
	}
}

// TestNothing has no receipt that could be read.
func TestNothing(t *testing.T) {
	t.Parallel()
	i := setUp(t, makeBundle(t, "good"))
	for _, c := range []struct {
		name, text string
		code       int
		o          Options
		damage     func()
	}{
		{"other target", "want cuda, got cpu", report.CheckFailed, Options{Target: "cuda"}, nil},
		{"no such level", "levels go from 1 to 7", report.Usage, Options{Level: 9}, nil},
		{"require deeper than level", "levels go from 1 to 7", report.Usage, Options{Level: 2, Require: 3}, nil},
		{"empty prefix", "nothing is installed", report.CheckFailed, Options{Prefix: t.TempDir()}, nil},
		{"cut receipt", "receipt.json", report.CheckFailed, Options{}, func() {
			write(t, i.path("receipt.json"), read(t, i.path("receipt.json"))[:100])
		}},
	} {
		if c.damage != nil {
			c.damage()
		}
		o := c.o
		o.Runner, o.Env, o.Python = run.System{}, cleanEnv(), i.py.Exe
		if o.Prefix == "" {
			o.Prefix = i.prefix
		}
		_, err := Run(t.Context(), o)
		if report.ExitCode(err) != c.code || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v with code %d, want %q with code %d", c.name, err, report.ExitCode(err), c.text, c.code)
		}
	}
}

// linkAgainst replaces stage 1 by a library that needs soname; with versions,
// the need is for a version of it that this host does not have.
func linkAgainst(t *testing.T, i *fixture, soname, versions string) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "stub.c"), "int future(void) { return 1; }\n")
	write(t, filepath.Join(dir, "use.c"), "int future(void); int use(void) { return future(); }\n")
	write(t, filepath.Join(dir, "map"), versions)
	stub := []string{"-x", "c", "-shared", "-fPIC", "-nostdlib", "-Wl,-soname," + soname, "-o", soname, "stub.c"}
	if versions != "" {
		stub = append(stub, "-Wl,--version-script=map")
	}
	compile(t, dir, stub...)
	out := i.path("ops/cpu/lib/libinvar_cpu.so")
	compile(t, dir, "-x", "c", "-shared", "-fPIC", "-nostdlib", "-o", out, "use.c", "-x", "none", soname)
	i.reseal(t)
}

func editRecord(t *testing.T, i *fixture, edit func(string) string) {
	t.Helper()
	found, err := filepath.Glob(i.path("site/*.dist-info/RECORD"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	var out strings.Builder
	for l := range strings.Lines(read(t, found[0])) {
		if l = edit(strings.TrimSpace(l)); l != "" {
			out.WriteString(l + "\n")
		}
	}
	write(t, found[0], out.String())
}

func flip(t *testing.T, path string) {
	t.Helper()
	b := []byte(read(t, path))
	b[len(b)/2] ^= 1
	write(t, path, string(b))
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestSeveral has two Pythons in one prefix: none is guessed.
func TestSeveral(t *testing.T) {
	t.Parallel()
	b := makeBundle(t, "good")
	i := setUp(t, b)
	other := privatePython(t, latest)
	prefix, err := install.Open(i.prefix)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prefix.Apply(t.Context(), install.Request{
		Bundle: install.Bundle{Target: "cpu", Flavour: "cpu", Fingerprint: "test", Contract: "invar-cpu-fp32/1"},
		Python: other, Env: cleanEnv(), Invar: "test",
	}, b.run, b.wheel); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, python, env, want string
		code                    int
	}{
		{"none named", "", "", "", report.Usage},
		{"by interpreter", other.Exe, "", other.Exe, report.Done},
		{"by id", i.receipt.Python.ID, "", i.py.Exe, report.Done},
		{"by folder", i.py.Prefix, "", i.py.Exe, report.Done},
		{"VIRTUAL_ENV", "", "VIRTUAL_ENV=" + other.Prefix, other.Exe, report.Done},
	} {
		res, err := Run(t.Context(), Options{
			Prefix: i.prefix, Python: c.python, Level: Files, Runner: run.System{}, Env: append(cleanEnv(), strings.Fields(c.env)...),
		})
		if report.ExitCode(err) != c.code || res.Python != c.want {
			t.Errorf("%s: %q, %v; want %q with code %d", c.name, res.Python, err, c.want, c.code)
		}
	}
}
