package templates

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// shells that CI images have.
var shells = [][]string{{"bash"}, {"dash"}, {"busybox", "sh"}}

// TestInstall: what fits is installed, what does not is not, and an invar that
// is there stays.
func TestInstall(t *testing.T) {
	t.Parallel()
	v := version(t)
	for _, tc := range []struct {
		name   string
		change func(r *release, env map[string]string)
		says   string // empty: it is installed
	}{
		{"as released", func(*release, map[string]string) {}, ""},
		{"with a v", func(_ *release, env map[string]string) { env["INVAR_VERSION"] = "v" + v }, ""},
		{"pinned", func(r *release, env map[string]string) {
			env["INVAR_SHA256"] = strings.Repeat("0", 64) + "\n" + r.digest
		}, ""},
		{"pinned to another", func(_ *release, env map[string]string) { env["INVAR_SHA256"] = strings.Repeat("0", 64) }, "as INVAR_SHA256 says"},
		{"pinned to a part of it", func(r *release, env map[string]string) { env["INVAR_SHA256"] = r.digest[:12] }, "as INVAR_SHA256 says"},
		{"wrong sum", func(r *release, _ map[string]string) {
			r.files["SHA256SUMS"] = bytes.Replace(r.files["SHA256SUMS"], []byte(r.digest), []byte(strings.Repeat("0", 64)), 1)
		}, "as SHA256SUMS says"},
		{"changed on the way", func(r *release, _ map[string]string) {
			r.files[r.name] = append([]byte("#!/bin/true\n"), r.files[r.name]...)
		}, "as SHA256SUMS says"},
		{"cut off", func(r *release, _ map[string]string) { r.files[r.name] = r.files[r.name][:4096] }, "as SHA256SUMS says"},
		{"not there", func(r *release, _ map[string]string) { delete(r.files, r.name) }, "was not fetched"},
		{"no sums", func(r *release, _ map[string]string) { delete(r.files, "SHA256SUMS") }, "was not fetched"},
		{"sums are a page", func(r *release, _ map[string]string) { r.files["SHA256SUMS"] = []byte("<html>log in</html>") }, "names no invar"},
		{"named twice", func(r *release, _ map[string]string) {
			r.files["SHA256SUMS"] = bytes.Repeat(r.files["SHA256SUMS"], 2)
		}, "or two"},
		{"path in a name", func(r *release, _ map[string]string) {
			r.files["SHA256SUMS"] = bytes.ReplaceAll(r.files["SHA256SUMS"], []byte("  invar_"), []byte("  ../invar_"))
		}, "names no invar"},
		{"another release", func(r *release, env map[string]string) { env["INVAR_VERSION"] = "0.0.1" }, "want invar 0.0.1"},
		{"a name that begins like it", func(r *release, env map[string]string) { env["INVAR_VERSION"] = v[:len(v)-1] }, "want invar"},
		{"another program", func(r *release, _ map[string]string) {
			other := []byte("#!/bin/sh\necho 1.0.0\n")
			r.files[r.name] = other
			r.files["SHA256SUMS"] = fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(other), r.name)
		}, "the binary says it is 1.0.0"},
		{"no version", func(_ *release, env map[string]string) { delete(env, "INVAR_VERSION") }, "INVAR_VERSION is empty"},
		{"version with a path", func(_ *release, env map[string]string) { env["INVAR_VERSION"] = "../../evil" }, "want a release"},
		{"plain HTTP", func(_ *release, env map[string]string) { env["INVAR_URL"] = "http://mirror.invalid/invar" }, "is not encrypted"},
		{"loopback by name only", func(_ *release, env map[string]string) { env["INVAR_URL"] = "http://localhost.evil.invalid/" }, "is not encrypted"},
		{"another scheme", func(_ *release, env map[string]string) { env["INVAR_URL"] = "file:///tmp" }, "want https"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			for _, shell := range shells {
				r := serve(t)
				bin := t.TempDir()
				before := []byte("the one before")
				if err := os.WriteFile(filepath.Join(bin, "invar"), before, 0o755); err != nil {
					t.Fatal(err)
				}
				env := map[string]string{"PATH": os.Getenv("PATH"), "INVAR_VERSION": v, "INVAR_URL": r.url, "INVAR_BIN": bin}
				tc.change(r, env)
				script, err := filepath.Abs(filepath.Join(root, "ci/install.sh"))
				if err != nil {
					t.Fatal(err)
				}
				code, out := execute(t, bin, env, append(shell[:len(shell):len(shell)], script)...)
				want := before
				if tc.says == "" {
					want = invar(t)
				}
				if (code == 0) != (tc.says == "") || !strings.Contains(out, tc.says) {
					t.Errorf("%v: exit code %d, want %q:\n%s", shell, code, tc.says, out)
				}
				if !bytes.Equal([]byte(read(t, filepath.Join(bin, "invar"))), want) {
					t.Errorf("%v: the binary is not what it must be\n%s", shell, out)
				}
				if left, _ := os.ReadDir(bin); len(left) != 1 {
					t.Errorf("%v: left behind: %v", shell, left)
				}
			}
		})
	}
}

// TestSameLines: the templates install with the lines of ci/install.sh.
func TestSameLines(t *testing.T) {
	t.Parallel()
	_, body, ok := strings.Cut(read(t, filepath.Join(root, "ci/install.sh")), "\nset -eu\n")
	if !ok {
		t.Fatal("ci/install.sh has no set -eu")
	}
	if strings.Contains(body, `\`) || strings.Contains(body, "'''") {
		t.Error("ci/install.sh has characters that a Jenkinsfile reads otherwise")
	}
	flat := func(s string) string {
		var lines []string
		for l := range strings.Lines(s) {
			lines = append(lines, strings.TrimSpace(l))
		}
		return strings.TrimSpace(strings.Join(lines, "\n"))
	}
	for _, file := range []string{"ci/github/action.yml", "ci/gitlab.yml", "ci/Jenkinsfile"} {
		if !strings.Contains(flat(read(t, filepath.Join(root, file))), flat("set -eu\n"+body)) {
			t.Errorf("%s does not install as ci/install.sh does: copy its lines from set -eu on", file)
		}
	}
}
