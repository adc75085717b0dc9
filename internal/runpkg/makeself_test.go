package runpkg_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/runpkg"
)

// tool finds a program that a test cannot do without.
func tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	text := fmt.Sprintf("needs %s (apt-get install makeself busybox shellcheck zstd lz4 bzip2 xz-utils)", name)
	if os.Getenv("INVAR_CI") == "1" {
		t.Fatal(text)
	}
	t.Skip(text)
	return ""
}

// makeself packs dir with Debian's makeself and returns the package.
func makeself(t testing.TB, dir string, flags ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "m.run")
	args := append(append([]string{"--nox11"}, flags...), dir, out, "version:1.0", "./bin/tool", "--arg")
	run(t, tool(t, "makeself"), args...)
	return out
}

func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// listing is a tree as text: path, type, permissions, content or target.
func listing(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch d.Type() {
		case fs.ModeSymlink:
			link, err := os.Readlink(p)
			fmt.Fprintf(&b, "%s -> %s\n", rel, link)
			return err
		case fs.ModeDir:
			fmt.Fprintf(&b, "%s/ %o\n", rel, info.Mode().Perm())
			return nil
		}
		data, err := os.ReadFile(p)
		fmt.Fprintf(&b, "%s %o %x\n", rel, info.Mode().Perm(), sha256.Sum256(data))
		return err
	}))
	return b.String()
}

func open(t testing.TB, path string) *runpkg.Package {
	t.Helper()
	p, err := runpkg.Open(path)
	must(t, err)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

var codecFlags = []struct {
	codec runpkg.Codec
	flags []string
	tool  string
}{
	{runpkg.Gzip, []string{"--gzip", "--complevel", "4", "--nomd5", "--sha256", "--tar-format", "posix"}, "gzip"}, // as vllm-ascend
	{runpkg.Gzip, []string{"--gzip", "--sha256"}, "gzip"},
	{runpkg.Zstd, []string{"--zstd"}, "zstd"},
	{runpkg.Xz, []string{"--xz", "--sha256"}, "xz"},
	{runpkg.Bzip2, []string{"--bzip2", "--nomd5", "--nocrc", "--sha256"}, "bzip2"},
	{runpkg.Lz4, []string{"--lz4"}, "lz4"},
	{runpkg.None, []string{"--nocomp", "--tar-format", "gnu"}, "cat"},
}

// TestMakeselfAndOursUnpackToTheSameTree is the promise of the format: the
// same folder, packed by either, opened by either.
func TestMakeselfAndOursUnpackToTheSameTree(t *testing.T) {
	t.Parallel()
	dir := sample(t)
	want := listing(t, dir)
	for _, c := range codecFlags {
		t.Run(fmt.Sprint(c.codec, len(c.flags)), func(t *testing.T) {
			t.Parallel()
			tool(t, c.tool)
			path := makeself(t, dir, c.flags...)
			p := open(t, path)
			if p.Kind != runpkg.KindMakeself || p.Codec != c.codec || p.Label != "version:1.0" || p.Script != "./bin/tool" || p.ScriptArgs != "--arg" {
				t.Errorf("read %+v", p)
			}
			r, err := p.Verify(context.Background(), runpkg.Options{})
			must(t, err)
			for _, check := range r.Checks {
				if check.Status != report.Pass {
					t.Errorf("check %+v", check)
				}
			}
			out := filepath.Join(t.TempDir(), "ours")
			_, err = p.Extract(context.Background(), out, runpkg.Options{})
			must(t, err)
			if got := listing(t, out); got != want {
				t.Errorf("our extraction:\n%s\nwant:\n%s", got, want)
			}
			theirs := filepath.Join(t.TempDir(), "theirs")
			run(t, "sh", path, "--noexec", "--target", theirs, "--quiet")
			if got := listing(t, theirs); got != want {
				t.Errorf("its own extraction:\n%s\nwant:\n%s", got, want)
			}
		})
	}
	for _, codec := range []runpkg.Codec{runpkg.Gzip, runpkg.Zstd, runpkg.None} {
		t.Run("ours "+string(codec), func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			_, err := open(t, pack(t, dir, codec)).Extract(context.Background(), out, runpkg.Options{})
			must(t, err)
			if got := listing(t, out); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// TestMakeselfAppend: makeself adds to the tar itself, so a file that was
// replaced is in it twice, and a new one is not.
func TestMakeselfAppend(t *testing.T) {
	t.Parallel()
	dir, more := sample(t), t.TempDir()
	path := makeself(t, dir, "--sha256")
	must(t, os.WriteFile(filepath.Join(more, "added"), []byte("added\n"), 0o644))
	run(t, "makeself", "--nox11", "--sha256", "--append", more, path)
	out := filepath.Join(t.TempDir(), "out")
	_, err := open(t, path).Extract(context.Background(), out, runpkg.Options{})
	must(t, err)
	theirs := filepath.Join(t.TempDir(), "theirs")
	run(t, "sh", path, "--noexec", "--target", theirs, "--quiet")
	if got, want := listing(t, out), listing(t, theirs); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	must(t, os.WriteFile(filepath.Join(more, "empty"), []byte("not any more\n"), 0o644))
	run(t, "makeself", "--nox11", "--sha256", "--append", more, path)
	if _, err := open(t, path).Verify(context.Background(), runpkg.Options{}); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("error %v, want one about a file that is in the archive twice", err)
	}
}

// TestRefusesByName: codings that invar does not open are named in the error.
func TestRefusesByName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want, tool string
		flags      []string
	}{
		{"base64", "base64", []string{"--base64"}},
		{"openssl", "openssl", []string{"--ssl-encrypt", "--ssl-passwd", "secret"}},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			tool(t, c.tool)
			_, err := runpkg.Open(makeself(t, sample(t), c.flags...))
			p, ok := errors.AsType[*report.Problem](err)
			if !ok || !strings.Contains(err.Error(), c.want) || p.Hint == "" {
				t.Errorf("error %v, want a Problem that names %s", err, c.want)
			}
		})
	}
}
