package runpkg_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/runpkg"
)

// FuzzOpen feeds whole files to the parser and to everything behind it: no
// panic, no file outside the folder, none left after an error.
func FuzzOpen(f *testing.F) {
	payload := gzipped(f, tarball(f, file("a/b", "x"), special("l", '2', "a/b")))
	for _, s := range styles {
		f.Add(s.build(nil, payload))
		f.Add(s.build(nil, tarball(f, file("a", "x")), payload))
	}
	f.Add(read(f, pack(f, sample(f), runpkg.Gzip)))
	f.Fuzz(func(t *testing.T, data []byte) { extractAnything(t, data) })
}

// FuzzTar fuzzes the archive inside a header that always fits.
func FuzzTar(f *testing.F) {
	f.Add(tarball(f, file("a/b", "x"), special("l", '2', "a/b"), special("h", '1', "a/b")))
	f.Add(tarball(f, special("l", '2', "d/../.."), special("d", '2', "e"), file("e/f", "")))
	f.Add(tarball(f, file(strings.Repeat("long/", 60)+"f", "")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<20 {
			return
		}
		extractAnything(t, styles["2.4.5"].build(nil, gzipped(t, data)))
	})
}

func extractAnything(t *testing.T, data []byte) {
	// Go's fuzzing waits for ever for an input that hangs.
	watch := time.AfterFunc(20*time.Second, func() { panic("still busy after 20 s") })
	defer watch.Stop()
	p, err := runpkg.OpenReader("fuzz", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return
	}
	outer := t.TempDir()
	out := filepath.Join(outer, "sub", "out")
	limits := runpkg.Limits{Files: 1000, Bytes: 4 << 20}
	_, verifyErr := p.Verify(context.Background(), runpkg.Options{Limits: limits})
	_, err = p.Extract(context.Background(), out, runpkg.Options{Limits: limits})
	if (verifyErr == nil) != (err == nil) && !strings.Contains(err.Error(), "extract") {
		t.Errorf("Verify says %v, Extract says %v", verifyErr, err)
	}
	list, _ := os.ReadDir(outer)
	if len(list) > 1 || len(list) == 1 && list[0].Name() != "sub" {
		t.Errorf("outside of the folder: %v", list)
	}
	if list, _ := os.ReadDir(filepath.Join(outer, "sub")); err != nil && len(list) > 0 {
		t.Errorf("left after an error: %v", list)
	}
	if err != nil {
		return
	}
	_ = filepath.WalkDir(out, func(path string, d os.DirEntry, _ error) error {
		if d == nil || d.Type() != os.ModeSymlink {
			return nil
		}
		real, err := filepath.EvalSymlinks(path)
		if err == nil && real != out && !strings.HasPrefix(real, out+"/") {
			t.Errorf("%s leads to %s", path, real)
		}
		return nil
	})
}
