package python

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// wheel writes a wheel with one module, as pip and uv take it.
func wheel(t *testing.T, dir, name, version string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, name+"-"+version+"-py3-none-any.whl"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	info := name + "-" + version + ".dist-info/"
	record := ""
	add := func(path, text string) {
		w, err := z.Create(path)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256([]byte(text))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", path, base64.RawURLEncoding.EncodeToString(sum[:]), len(text))
	}
	add(name+"/__init__.py", "__version__ = '"+version+"'\n")
	add(info+"METADATA", "Metadata-Version: 2.1\nName: "+name+"\nVersion: "+version+"\n")
	add(info+"WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
	add(info+"RECORD", record)
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestMakeFromWheelhouse makes environments with the real installers, offline,
// from a folder: with uv, and with venv and pip where there is no uv.
func TestMakeFromWheelhouse(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: makes virtual environments")
	}
	base, _, err := Base(t.Context(), Options{Env: os.Environ(), Runner: run.System{}}, 10)
	if err != nil || base.Exe == "" {
		t.Skip("needs Python 3.10 or newer")
	}
	house := filepath.Join(t.TempDir(), "wheel house")
	if err := os.Mkdir(house, 0o755); err != nil {
		t.Fatal(err)
	}
	wheel(t, house, "torch", "2.15.0")
	wheel(t, house, "numpy", "2.0.0")
	for _, installer := range []string{"uv", "pip"} {
		t.Run(installer, func(t *testing.T) {
			t.Parallel()
			env := os.Environ()
			if installer == "uv" {
				if _, err := exec.LookPath("uv"); err != nil {
					t.Skip("needs uv: .ci/setup installs it")
				}
			} else {
				env = append(env, "PATH=/usr/bin:/bin") // where uv is not
			}
			dir := filepath.Join(t.TempDir(), "own env")
			r := Recipe{Base: base, Dir: dir, Packages: []string{"torch==2.15.0", "numpy"}, Wheelhouse: house, Offline: true, Installer: installer}
			o := Options{Env: env, Runner: run.System{}}
			py, err := Make(t.Context(), r, o, filepath.Join(t.TempDir(), "log"), "python", report.Discard)
			if err != nil {
				t.Fatal(err)
			}
			if py.Torch.Version != "2.15.0" || !py.Own || py.Minor() != base.Minor() {
				t.Errorf("made %+v", py)
			}
			if again, ok := OwnAt(dir); !ok || again.ID() != py.ID() {
				t.Errorf("found again: %v, %+v", ok, again)
			}
			out, err := exec.CommandContext(t.Context(), py.Exe, "-c", "import torch, numpy; print(torch.__version__)").Output()
			if err != nil || string(out) != "2.15.0\n" {
				t.Errorf("the environment answers %q, %v", out, err)
			}
			if installer == "pip" {
				return // the rest is the same, and venv takes seconds
			}
			// What the folder does not hold is a failure with a way out, and leaves nothing.
			r.Dir, r.Packages = filepath.Join(t.TempDir(), "none"), []string{"torch==2.14.0"}
			_, err = Make(t.Context(), r, o, filepath.Join(t.TempDir(), "log"), "python", report.Discard)
			p, ok := errors.AsType[*report.Problem](err)
			if !ok || p.Code != report.BuildFailed || !strings.Contains(p.Hint, "--wheelhouse") || p.Tail == "" {
				t.Errorf("a wheel that is not there: %+v", err)
			}
			if _, err := os.Lstat(r.Dir); err == nil {
				t.Errorf("%s was left behind", r.Dir)
			}
		})
	}
}

// TestCommandsWithoutUV: the words of pip, with every source of packages.
func TestCommandsWithoutUV(t *testing.T) {
	t.Parallel()
	r := Recipe{Base: Python{Exe: "/usr/bin/python3"}, Dir: "/e", Packages: []string{"torch==2.15.0"}, Installer: "pip"}
	for _, tc := range []struct {
		name   string
		change func(*Recipe)
		index  string
		want   []string
	}{
		{"index first, the configured one beside it", func(*Recipe) {}, "https://i", []string{"--extra-index-url", "https://i"}},
		{"wheelhouse and index", func(r *Recipe) { r.Wheelhouse = "/w" }, "https://i", []string{"--find-links", "/w", "--extra-index-url", "https://i"}},
		{"offline", func(r *Recipe) { r.Wheelhouse, r.Offline = "/w", true }, "https://i", []string{"--find-links", "/w", "--no-index"}},
		{"offline without a folder", func(r *Recipe) { r.Offline = true }, "https://i", []string{"--no-index"}},
	} {
		r := r
		tc.change(&r)
		got := r.Commands(tc.index)
		if !slices.Equal(got[0], []string{"/usr/bin/python3", "-m", "venv", "/e"}) {
			t.Errorf("%s: %q", tc.name, got[0])
		}
		want := append(append([]string{"/e/bin/python", "-m", "pip", "install", "--no-input"}, tc.want...), "torch==2.15.0")
		if !slices.Equal(got[1], want) {
			t.Errorf("%s: got %q, want %q", tc.name, got[1], want)
		}
	}
}
