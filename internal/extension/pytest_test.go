package extension

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/invar-ops/invar/internal/testkit"
)

// generation builds with the newest torch and returns the folder that holds
// site/ and ops/.
func generation(t *testing.T) string {
	t.Helper()
	shared := testkit.Need(t, testkit.Latest)
	dir := t.TempDir()
	py, err := testkit.Private(shared, filepath.Join(dir, "venv"))
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	cmd := exec.Command("go", "run", "../../cmd/invar", "build", "cpu", "--python", py.Exe, "--prefix", home)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(home, "env", py.ID(), "gen", "1")
}

// TestPython runs the same built library in both torches: what it was compiled
// with, and the floor of the stable ABI.
func TestPython(t *testing.T) {
	if testing.Short() {
		t.Skip("short: starts Python with torch")
	}
	gen := generation(t)
	for _, name := range []string{testkit.Latest, testkit.Floor} {
		t.Run(name, func(t *testing.T) {
			py := testkit.Need(t, name)
			cmd := exec.Command(py.Exe, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=5", "tests")
			cmd.Dir = "../../targets/extension"
			cmd.Env = append(os.Environ(), "INVAR_TEST_SITE="+gen, "PYTHONDONTWRITEBYTECODE=1", "OMP_WAIT_POLICY=PASSIVE")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
