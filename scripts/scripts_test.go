package scripts

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEmbedded compares what is in the binary with what is in the folder:
// __init__.py is what a pattern without all: loses.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	var got []string
	err := fs.WalkDir(FS, ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			got = append(got, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want, err := filepath.Glob("invar_*/*.py")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Errorf("embedded %v, want %v", got, want)
	}
	for _, name := range []string{"invar_probe/__init__.py", "invar_probe/__main__.py"} {
		if !slices.Contains(got, name) {
			t.Errorf("%s is not embedded", name)
		}
	}
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := Unpack(dir); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, Probe, "__main__.py"))
	if err != nil || !strings.Contains(string(b), "def main") {
		t.Errorf("__main__.py: %v, %q", err, b)
	}
	if err := Unpack(filepath.Join(dir, Probe, "bits.py")); err == nil {
		t.Error("no error where the folder is a file")
	}
}
