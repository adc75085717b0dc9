package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
)

// TestExplainWhatCannotBeMade: a place where no folder can be made is the
// host's to offer another, not a failure of the build.
func TestExplainWhatCannotBeMade(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(t.TempDir(), "loop")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/proc/invar", filepath.Join(file, "home"), filepath.Join(loop, "home"), "/tmp/" + strings.Repeat("n", 300)} {
		_, err := Open(dir)
		p, ok := err.(*report.Problem) //nolint:errorlint // Open returns it as it is
		if !ok || p.Code != report.Unmet || !strings.Contains(p.Hint, "--prefix") {
			t.Errorf("%.40s: got %v, want exit code 3 and another --prefix", dir, err)
		}
	}
}
