package python

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// tree writes files (an empty content makes a folder when the name ends in /).
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(p, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// refuse is a Runner for tests in which no process may start.
var refuse = run.NewReplay(nil)

func venv(dir, torch string) map[string]string {
	site := dir + "/lib/python3.12/site-packages/"
	m := map[string]string{
		dir + "/pyvenv.cfg": "home = /usr/bin\nversion_info = 3.12.4.final.0\ninclude-system-site-packages = false\n",
		dir + "/bin/python": "\x7fELF", dir + "/bin/python3": "\x7fELF", site: "",
	}
	if torch != "" {
		m[site+"torch-"+torch+".dist-info/METADATA"] = "Name: torch\n"
		m[site+"torch/"] = ""
	}
	return m
}

func TestInspectReadsLayouts(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, exe, version, purelib, torch string
		files                              map[string]string
	}{
		{"venv", "v/bin/python", "3.12.4", "v/lib/python3.12/site-packages", "2.15.0+cpu", venv("v", "2.15.0+cpu")},
		{"prefix", "p/bin/python3.11", "3.11.7", "p/lib/python3.11/site-packages", "", map[string]string{
			"p/bin/python3.11": "\x7fELF", "p/lib/python3.11/os.py": "", "p/lib/python3.11/site-packages/": "",
			"p/include/python3.11/patchlevel.h": "#define PY_VERSION\t\t\"3.11.7\"\n",
		}},
		{"debian", "usr/bin/python3.13", "3.13", "usr/local/lib/python3.13/dist-packages", "2.10.0", map[string]string{
			"usr/bin/python3.13": "\x7fELF", "usr/lib/python3.13/os.py": "", "usr/lib/python3/dist-packages/six.py": "",
			"usr/local/lib/python3.13/dist-packages/torch-2.10.0.dist-info/METADATA": "", "usr/local/lib/python3.13/dist-packages/torch/__init__.py": "",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			root := tree(t, tc.files)
			p, ok := Inspect(filepath.Join(root, tc.exe))
			if !ok || p.Version != tc.version || p.Purelib != filepath.Join(root, tc.purelib) || p.Torch.Version != tc.torch {
				t.Fatalf("got %+v, %v", p, ok)
			}
		})
	}
}

func TestInspectRefusesLaunchersAndTorsos(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{
		"bin/python3": "#!/bin/sh\n", "x/bin/python3.11": "\x7fELF",
		"gone/lib/python3.12/site-packages/torch-2.15.0.dist-info/METADATA": "", "gone/bin/python": "\x7fELF",
		"gone/pyvenv.cfg": "version = 3.12.1\n",
	})
	for _, exe := range []string{"bin/python3", "x/bin/python3.11"} {
		if p, ok := Inspect(filepath.Join(root, exe)); ok {
			t.Errorf("%s: taken as %+v", exe, p)
		}
	}
	// Metadata without the package folder is an uninstall that was cut short.
	if p, ok := Inspect(filepath.Join(root, "gone/bin/python")); !ok || p.HasTorch() {
		t.Errorf("gone: %+v, %v; want an environment without torch", p, ok)
	}
}

func TestFindOrder(t *testing.T) {
	t.Parallel()
	files := venv("first", "")
	maps.Copy(files, venv("second", "2.15.0"))
	maps.Copy(files, venv("home/python/3.12-torch-2.15.0", "2.15.0"))
	files["home/python/3.12-torch-2.15.0/"+ready] = ""
	root := tree(t, files)
	path := "PATH=" + root + "/first/bin:" + root + "/second/bin"
	for _, tc := range []struct {
		name, exe, want, why string
		env                  []string
	}{
		{"explicit folder", filepath.Join(root, "first"), "first/bin/python", "--python", []string{path}},
		{"VIRTUAL_ENV goes before PATH", "", "first/bin/python", "VIRTUAL_ENV", []string{path, "VIRTUAL_ENV=" + root + "/first"}},
		{"first on PATH with torch", "", "second/bin/python3", "first python3 on PATH with torch", []string{path}},
		{"own", "", "home/python/3.12-torch-2.15.0/bin/python", "made by invar", []string{"PATH=" + root + "/first/bin"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, _, err := Find(t.Context(), Options{Exe: tc.exe, Env: tc.env, Home: root + "/home", Runner: refuse})
			if err != nil || p.Exe != filepath.Join(root, tc.want) || p.Why != tc.why {
				t.Fatalf("got %s (%s), %v", p.Exe, p.Why, err)
			}
		})
	}
}

func TestFindRefuses(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{
		{Exe: "/nonexistent/python"},
		{Exe: "python-that-is-not-there", Env: []string{"PATH=/usr/bin"}},
		{Env: []string{"VIRTUAL_ENV=/nonexistent"}},
	} {
		o.Runner = refuse
		_, _, err := Find(t.Context(), o)
		if report.ExitCode(err) != report.Unmet {
			t.Errorf("%+v: got %v, want exit code 3", o, err)
		}
	}
}

// A pyenv shim is a script: it is not started when no version has torch.
func TestShimWithoutTorchStartsNothing(t *testing.T) {
	t.Parallel()
	root := tree(t, map[string]string{
		"pyenv/shims/python3": "#!/usr/bin/env bash\n", "pyenv/versions/3.11.7/lib/python3.11/site-packages/pip.py": "",
	})
	p, seen, err := Find(t.Context(), Options{Env: []string{"PATH=" + root + "/pyenv/shims"}, Home: root, Runner: refuse})
	if err != nil || p.Exe != "" || len(seen) != 1 || !strings.Contains(seen[0].Reason, "pyenv shim") {
		t.Fatalf("got %+v, %+v, %v", p, seen, err)
	}
}

func TestIDIsThatOfTheRealPath(t *testing.T) {
	t.Parallel()
	root := tree(t, venv("v", ""))
	if err := os.Symlink(filepath.Join(root, "v"), filepath.Join(root, "w")); err != nil {
		t.Fatal(err)
	}
	a, _ := Inspect(filepath.Join(root, "v/bin/python"))
	b, _ := Inspect(filepath.Join(root, "w/bin/python"))
	if a.ID() != b.ID() || len(a.ID()) != 12 {
		t.Errorf("got %s and %s", a.ID(), b.ID())
	}
}

func TestCommandsOfARecipe(t *testing.T) {
	t.Parallel()
	r := Recipe{Base: Python{Exe: "/usr/bin/python3"}, Dir: "/p", Packages: []string{"torch==2.15.0"}, Installer: "pip"}
	got := r.Commands("https://example.org/cpu")
	if want := "/p/bin/python -m pip install --no-input --extra-index-url https://example.org/cpu torch==2.15.0"; strings.Join(got[1], " ") != want {
		t.Errorf("got %q", got[1])
	}
	r.Installer, r.Offline, r.Wheelhouse = "uv", true, "/w"
	if want := "uv pip install --python /p/bin/python --find-links /w --no-index torch==2.15.0"; strings.Join(r.Commands("https://x")[1], " ") != want {
		t.Errorf("got %q", r.Commands("https://x")[1])
	}
}
