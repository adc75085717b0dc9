package doctor

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/target"
)

// glibcText is what libc.so.6 prints when it is run; its bytes hold it.
const glibcText = "\x00GNU C Library (Debian GLIBC 2.36-9+deb12u9) stable release version 2.36.\n\x00"

// debian is the file system of a Debian image without anything installed.
func debian() map[string]string {
	return map[string]string{
		"etc/os-release":                     "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n",
		"usr/lib/x86_64-linux-gnu/libc.so.6": glibcText,
		"usr/lib64/ld-linux-x86-64.so.2":     "",
		"lib":                                "->usr/lib",
		"lib64":                              "->usr/lib64",
		"bin":                                "->usr/bin",
		"usr/bin/sh":                         "+x",
		"usr/bin/tar":                        "+x",
		"usr/bin/gzip":                       "+x",
	}
}

// with adds files to a tree: "->" makes a link, "+x" a program.
func with(trees ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, t := range trees {
		maps.Copy(out, t)
	}
	return out
}

func build(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch to, link := strings.CutPrefix(text, "->"); {
		case link:
			err = os.Symlink(to, p)
		case strings.HasPrefix(text, "+x"):
			err = os.WriteFile(p, []byte(text[2:]), 0o755)
		default:
			err = os.WriteFile(p, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// examine runs doctor over a tree, as --root does.
func examine(t *testing.T, name string, files map[string]string, change ...func(*Options)) Result {
	t.Helper()
	tg, err := target.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	tg.Missing = nil // what this version of invar cannot do is not the tree's fault
	o := Options{Root: build(t, files)}
	for _, c := range change {
		c(&o)
	}
	r, err := Run(t.Context(), tg, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// ids lists the findings of a status.
func (r Result) ids(s report.Status) []string {
	var out []string
	for _, f := range r.Findings {
		if f.Status == s {
			out = append(out, f.ID)
		}
	}
	return out
}

// expect wants a finding with status whose text holds the parts.
func expect(t *testing.T, r Result, id string, s report.Status, parts ...string) {
	t.Helper()
	for _, f := range r.Findings {
		if f.ID == id && f.Status == s {
			text := f.Want + " | " + f.Got + " | " + f.Hint
			for _, p := range parts {
				if !strings.Contains(text, p) {
					t.Errorf("%s: %q lacks %q", id, text, p)
				}
			}
			return
		}
	}
	t.Errorf("no finding %s with status %s; fail %v, warn %v", id, s, r.ids(report.Fail), r.ids(Warn))
}

// absent wants no finding with the id but a passed one.
func absent(t *testing.T, r Result, ids ...string) {
	t.Helper()
	for _, f := range r.Findings {
		for _, id := range ids {
			if f.ID == id && f.Status != report.Pass {
				t.Errorf("%s is %s: %s", id, f.Status, f.Got)
			}
		}
	}
}

// python311 is a system Python with its development files.
func python311() map[string]string {
	return map[string]string{
		"usr/bin/python3":                            "->python3.11",
		"usr/bin/python3.11":                         "+x\x7fELF",
		"usr/lib/python3.11/os.py":                   "",
		"usr/lib/python3.11/ensurepip/__init__.py":   "",
		"usr/lib/python3/dist-packages/README":       "",
		"usr/include/python3.11/Python.h":            "",
		"usr/include/python3.11/patchlevel.h":        "#define PY_VERSION \"3.11.2\"\n",
		"usr/share/python-wheels/pip-23.0.1-py3.whl": "",
	}
}

const site = "usr/local/lib/python3.11/dist-packages/"

// dist is the metadata of one installed distribution.
func dist(name, version string) map[string]string {
	return map[string]string{site + strings.ReplaceAll(name, "-", "_") + "-" + version + ".dist-info/METADATA": "Name: " + name + "\nVersion: " + version + "\n"}
}

// torch is an installed torch; cuda is "" for a build without.
func torch(version, cuda string) map[string]string {
	line := "cuda: Optional[str] = None"
	if cuda != "" {
		line = "cuda: Optional[str] = '" + cuda + "'"
	}
	return with(dist("torch", version), map[string]string{
		site + "torch/version.py":                      "from typing import Optional\n\n__version__ = '" + version + "'\ndebug = False\n" + line + "\n",
		site + "torch-" + version + ".dist-info/WHEEL": "Wheel-Version: 1.0\nTag: cp311-cp311-manylinux_2_28_x86_64\n",
	})
}

// gcc is Debian's g++ of a major version, with C headers and libstdc++.
func gcc(major string) map[string]string {
	return map[string]string{
		"usr/bin/c++":                           "->/etc/alternatives/c++",
		"etc/alternatives/c++":                  "->/usr/bin/g++",
		"usr/bin/g++":                           "->g++-" + major,
		"usr/bin/g++-" + major:                  "->x86_64-linux-gnu-g++-" + major,
		"usr/bin/x86_64-linux-gnu-g++-" + major: "+x",
		"usr/lib/gcc/x86_64-linux-gnu/" + major + "/cc1plus": "+x",
		"usr/include/stdio.h":                                "",
		"usr/lib/x86_64-linux-gnu/libstdc++.so.6":            "\x00GLIBCXX_3.4.9\x00GLIBCXX_3.4.30\x00GLIBCXX_3.4.24\x00",
		"etc/ssl/certs/ca-certificates.crt":                  "x",
	}
}

func target0(t *testing.T, name string) target.Target {
	t.Helper()
	tg, err := target.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return tg
}

// reader reads a made-up root by itself, without a target.
func reader(t *testing.T, files map[string]string) *gatherer {
	t.Helper()
	r, err := rootfs.Open(build(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return &gatherer{root: r, env: map[string]string{}}
}
