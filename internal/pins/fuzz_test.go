package pins

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzLock: a lock that is read can be written, and is read as the same.
func FuzzLock(f *testing.F) {
	f.Add([]byte("schema: 1\nfiles: []\n"))
	f.Add([]byte("schema: 1\nfiles:\n  - {name: a, sha256: " + aa + ", size: 1, from: \"x: #y\"}\n"))
	f.Add([]byte("<<<<<<<\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file := filepath.Join(t.TempDir(), LockName)
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := ReadLock(file)
		if err != nil {
			return
		}
		if err := l.Write(file); err != nil {
			t.Fatal(err)
		}
		again, err := ReadLock(file)
		if err != nil || len(again.Files) != len(l.Files) {
			t.Fatalf("written it is another: %v", err)
		}
		for i := range l.Files {
			if again.Files[i] != l.Files[i] {
				t.Errorf("%d: %+v, was %+v", i, again.Files[i], l.Files[i])
			}
		}
	})
}
