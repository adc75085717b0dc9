package cudakernels

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/run"
)

// TestGPUCommand: .ci/gpu refuses what it does not know, and a host without a
// GPU with exit code 3, before it makes anything; CI's summary names what was
// not run.
func TestGPUCommand(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		t.Skip("there is a GPU: .ci/gpu would run for an hour")
	}
	out := filepath.Join(t.TempDir(), "record")
	for _, tc := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"--out", out}, 3, []string{"not run", "/dev/nvidiactl is missing", "compute-sanitizer (memcheck, racecheck, initcheck, synccheck)", "CUDA graphs"}},
		{[]string{"--out", out, "--quick", "kernels", "speed"}, 3, []string{"not run"}},
		{[]string{"--missing"}, 0, []string{"not run", "where there is one: .ci/gpu"}},
		{[]string{"--out"}, 2, []string{"--out needs a folder"}},
		{[]string{"--out", ""}, 2, []string{"--out needs a folder"}},
		{[]string{"racecheck"}, 2, []string{"usage: .ci/gpu"}},
		{[]string{"--fast"}, 2, []string{"usage: .ci/gpu"}},
	} {
		res, err := run.System{}.Run(t.Context(), run.Cmd{Argv: append([]string{"../../.ci/gpu"}, tc.args...), Env: os.Environ()})
		if res.Code != tc.code {
			t.Errorf("%q: exit code %d (%v), want %d", tc.args, res.Code, err, tc.code)
		}
		said := string(res.Stdout) + string(res.Stderr)
		for _, text := range tc.says {
			if !strings.Contains(said, text) {
				t.Errorf("%q does not say %q:\n%s", tc.args, text, said)
			}
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a folder was made for a record of nothing")
	}
}
