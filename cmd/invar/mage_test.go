package main

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/invar-ops/invar/internal/target"
)

func mage(t *testing.T, cache string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"tool", "mage"}, args...)...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "MAGEFILE_CACHE="+cache, "MAGEFILE_HASHFAST=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestMageHasEveryTarget: a target without its mage front door is a drift.
func TestMageHasEveryTarget(t *testing.T) {
	t.Parallel()
	all, err := target.All()
	if err != nil {
		t.Fatal(err)
	}
	list, err := mage(t, t.TempDir(), "-l")
	if err != nil {
		t.Fatalf("%v\n%s", err, list)
	}
	for _, x := range all {
		if !strings.Contains(list, "build:"+x.Name+" ") {
			t.Errorf("no build:%s in magefiles/magefile.go:\n%s", x.Name, list)
		}
		if !strings.Contains(list, "image:"+x.Name+" ") {
			t.Errorf("no image:%s in magefiles/image.go:\n%s", x.Name, list)
		}
	}
}

// TestTwoMagesAtOnce: with a warm MAGEFILE_HASHFAST they do not share the file
// that mage generates, and the binary is replaced by a rename.
func TestTwoMagesAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("short: compiles the magefiles")
	}
	cache := t.TempDir()
	if out, err := mage(t, cache, "detect"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if out, err := mage(t, cache, "detect"); err != nil || !strings.Contains(out, "target cpu") {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	wg.Wait()
}

// TestMageKeepsTheExitCode: mage's own code is the program's.
func TestMageKeepsTheExitCode(t *testing.T) {
	if testing.Short() {
		t.Skip("short: compiles the magefiles")
	}
	out, err := mage(t, t.TempDir(), "build:ascend910b")
	ee, ok := err.(*exec.ExitError) //nolint:errorlint // exec returns it bare
	if !ok || ee.ExitCode() != 3 || !strings.Contains(out, "does not meet ascend910b") {
		t.Errorf("got %v, want exit code 3\n%s", err, out)
	}
}
