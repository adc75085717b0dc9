package runpkg_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/invar-ops/invar/internal/runpkg"
)

func spec(dir string, codec runpkg.Codec) runpkg.Spec {
	return runpkg.Spec{
		Manifest: runpkg.Manifest{
			Name: "invar-ops-cpu", Version: "1.2.3", Platform: runpkg.Platform(runtime.GOOS, runtime.GOARCH),
			Contract: "1", Operators: []string{"mm", "softmax"}, ISALevels: []string{"baseline", "avx2"},
			Compiler: "g++ 12.2.0", SourceDigest: "sha256:0",
		},
		Tree: os.DirFS(dir), Codec: codec,
	}
}

// pack writes the tree below dir and returns the path of the package.
func pack(t testing.TB, dir string, codec runpkg.Codec) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.run")
	_, err := runpkg.Write(context.Background(), path, spec(dir, codec))
	must(t, err)
	return path
}

// TestWriteIsReproducible must not run in parallel: it sets GOMAXPROCS and umask.
func TestWriteIsReproducible(t *testing.T) {
	for _, codec := range []runpkg.Codec{runpkg.Gzip, runpkg.Zstd, runpkg.None} {
		dir := sample(t)
		want := read(t, pack(t, dir, codec))
		copied := t.TempDir()
		defer syscall.Umask(syscall.Umask(0o077))
		must(t, os.CopyFS(copied, os.DirFS(dir)))
		must(t, filepath.Walk(copied, func(p string, info os.FileInfo, err error) error {
			if err != nil || info.Mode().Type() != 0 {
				return err
			}
			old := time.Unix(1e9, 0)
			if err := os.Chtimes(p, old, old); err != nil {
				return err
			}
			return os.Chmod(p, info.Mode().Perm()&0o700)
		}))
		for _, procs := range []int{1, 2, 7} {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			if !bytes.Equal(read(t, pack(t, copied, codec)), want) {
				t.Errorf("%s: other bytes with GOMAXPROCS=%d, another folder, umask 077 and old times", codec, procs)
			}
		}
		syscall.Umask(0o022)
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	good := runpkg.Manifest{Name: "n", Version: "1", Platform: "linux.x86_64"}
	file := fstest.MapFS{"f": {Data: []byte("x")}}
	for name, c := range map[string]struct {
		m    runpkg.Manifest
		tree fstest.MapFS
		want string
	}{
		"name with quote":   {runpkg.Manifest{Name: `n"`, Version: "1", Platform: "linux.x86_64"}, file, "cannot be part"},
		"version empty":     {runpkg.Manifest{Name: "n", Platform: "linux.x86_64"}, file, "version"},
		"platform":          {runpkg.Manifest{Name: "n", Version: "1", Platform: "linux"}, file, "platform"},
		"empty tree":        {good, fstest.MapFS{}, "nothing to pack"},
		"link out":          {good, fstest.MapFS{"a/l": {Data: []byte("../../x"), Mode: os.ModeSymlink}}, "leads out"},
		"link absolute":     {good, fstest.MapFS{"l": {Data: []byte("/etc/passwd"), Mode: os.ModeSymlink}}, "leads out"},
		"link out by chain": {good, fstest.MapFS{"a/b/f": {}, "l": {Data: []byte("a/b"), Mode: os.ModeSymlink}, "m": {Data: []byte("l/../../../x"), Mode: os.ModeSymlink}}, "leads out"},
		"device":            {good, fstest.MapFS{"d": {Mode: os.ModeDevice}}, "cannot be packed"},
		"newline":           {good, fstest.MapFS{"a\nb": {}}, "cannot be packed"},
		"our record":        {good, fstest.MapFS{".invar-installed": {}}, "cannot be packed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			_, err := runpkg.Write(context.Background(), filepath.Join(dir, "p.run"), runpkg.Spec{Manifest: c.m, Tree: c.tree})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			left, _ := os.ReadDir(dir)
			if len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestWriteStopsWithContext(t *testing.T) {
	t.Parallel()
	dir, out := sample(t), t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := runpkg.Write(ctx, filepath.Join(out, "p.run"), spec(dir, "")); err == nil {
		t.Error("no error from a cancelled context")
	}
	if left, _ := os.ReadDir(out); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFileName(t *testing.T) {
	t.Parallel()
	got := runpkg.FileName("invar-ops-cpu", "1.0.0", runpkg.Platform("linux", "amd64"))
	if want := "invar-ops-cpu-1.0.0-linux.x86_64.run"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	must(t, err)
	return data
}
