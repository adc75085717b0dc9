package install

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestCheckSeen changes a file behind the back of what was remembered, with its
// old size and its old time, and one in which only the content was forged: the
// first is found by its looks, the second by a full check alone.
func TestCheckSeen(t *testing.T) {
	t.Parallel()
	p, py := openPrefix(t), fakePython(t)
	r := apply(t, p, request(py), makeBundle(t, t.TempDir(), "a", 5000))
	sound := func(what string, want bool, check func() (Health, error)) {
		t.Helper()
		h, err := check()
		if err != nil || h.OK != want {
			t.Errorf("%s: got %+v, %v", what, h, err)
		}
	}
	seen := func() (Health, error) { return CheckSeen(t.Context(), r, nil) }
	full := func() (Health, error) { return Check(t.Context(), r, nil) }
	time.Sleep(2 * young) // what is younger is not remembered
	sound("a full check", true, full)
	if known := readLooks(r.Dir()); len(known) != 0 {
		t.Errorf("a full check wrote %+v", known)
	}
	sound("first look", true, seen)
	known := readLooks(r.Dir())
	if len(known) == 0 {
		t.Fatal("nothing was remembered")
	}
	sound("second look", true, seen)

	file := filepath.Join(r.Dir(), r.Files[0].Path)
	was, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil || len(content) == 0 {
		t.Fatalf("%s: %d bytes, %v", file, len(content), err)
	}
	other := append([]byte{}, content...)
	other[0] ^= 1
	if err := os.WriteFile(file, other, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(file, was.ModTime(), was.ModTime()); err != nil {
		t.Fatal(err)
	}
	sound("same size and time, other content", false, seen)

	// As if a disk had changed it: what is remembered is of this very file.
	time.Sleep(2 * young)
	known = readLooks(r.Dir())
	text, _ := lookOf(file, time.Now())
	known[r.Files[0].Path] = look{text, r.Files[0].SHA256, r.Files[0].Size}
	writeLooks(r.Dir(), known)
	sound("a change that nothing shows", true, seen)
	sound("a change that nothing shows, read", false, full)

	// A damaged note is no note.
	if err := os.WriteFile(filepath.Join(r.Dir(), looksName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	sound("a damaged note", false, seen)
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	sound("put right", true, seen)
}

// TestYoungFilesAreReadAgain does not remember what might change unseen.
func TestYoungFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	if err := os.WriteFile(file, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	if text, settled := lookOf(file, now); text == "" || settled {
		t.Errorf("just written: %q, settled %v", text, settled)
	}
	if _, settled := lookOf(file, now.Add(coarse)); !settled {
		t.Error("never settled")
	}
	_, toRead, before := seen(dir, []File{{Path: "f"}}, nil)
	known := map[string]look{}
	remember(dir, known, toRead, before)
	if len(known) != 0 {
		t.Errorf("remembered %+v", known)
	}
}
