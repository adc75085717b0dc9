package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
)

// program builds cmd/invar once for all benchmarks. INVAR_BENCH_PROGRAM names a
// built one instead, for machines without Go.
var program = sync.OnceValues(func() (string, error) {
	if bin := os.Getenv("INVAR_BENCH_PROGRAM"); bin != "" {
		return filepath.Abs(bin)
	}
	dir, err := os.MkdirTemp("", "invar-bench-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "invar")
	out, err := exec.Command("go", "build", "-o", bin, "github.com/invar-ops/invar/cmd/invar").CombinedOutput()
	if err != nil {
		os.Stderr.Write(out)
	}
	return bin, err
})

func TestMain(m *testing.M) {
	code := m.Run()
	if bin, err := program(); err == nil && os.Getenv("INVAR_BENCH_PROGRAM") == "" {
		_ = os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

// A place is one home of invar and one Python with torch that nothing else uses.
type place struct {
	bin, home, python string
}

func newPlace(b *testing.B) place {
	b.Helper()
	bin, err := program()
	must(b, err)
	return place{bin: bin, home: filepath.Join(b.TempDir(), "home"), python: privatePython(b)}
}

// shared is the environment with torch that is measured: INVAR_BENCH_ENV, else
// the newest that .ci/setup makes.
func shared(b *testing.B) python.Python {
	b.Helper()
	dir := os.Getenv("INVAR_BENCH_ENV")
	if dir == "" {
		return testkit.Need(b, testkit.Latest)
	}
	py, ok := python.Inspect(filepath.Join(dir, "bin", "python"))
	if !ok || !py.HasTorch() {
		b.Fatalf("INVAR_BENCH_ENV: got %s, want an environment with torch", dir)
	}
	return py
}

// privatePython links everything in the shared environment into a new one, so
// that the hook of a measured build goes nowhere else.
func privatePython(b *testing.B) string {
	b.Helper()
	py, err := testkit.Private(shared(b), b.TempDir())
	must(b, err)
	return py.Exe
}

// env is the environment of every process here.
func (p place) env() []string {
	env := run.Unsetenv(os.Environ(), "PYTHONPATH", "INVAR_CPU_LIBRARY", "INVAR_CPU_ISA", "VIRTUAL_ENV", "INVAR_PREFIX")
	return append(env, "INVAR_HOME="+p.home, "XDG_STATE_HOME="+filepath.Dir(p.home), "PYTHONDONTWRITEBYTECODE=1")
}

// invar runs the program and returns stdout and how long the process took.
func (p place) invar(b *testing.B, args ...string) ([]byte, time.Duration) {
	b.Helper()
	return p.command(b, append([]string{p.bin}, args...)...)
}

func (p place) command(b *testing.B, argv ...string) ([]byte, time.Duration) {
	b.Helper()
	out, took, _ := commandIn(b, p.env(), argv...)
	return out, took
}

// commandIn runs argv and gives what it printed, how long it took and how much
// of a processor it and its children used.
func commandIn(b *testing.B, env []string, argv ...string) (printed []byte, took, cpu time.Duration) {
	b.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	var out, log bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &log
	start := time.Now()
	err := cmd.Run()
	took = time.Since(start)
	if err != nil {
		b.Fatalf("%s: %v\n%s%s", strings.Join(argv, " "), err, log.String(), out.String())
	}
	return out.Bytes(), took, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// result decodes the result of a command's JSON.
func result(b *testing.B, out []byte, into any) {
	b.Helper()
	envelope := struct {
		Result any `json:"result"`
	}{into}
	if err := json.Unmarshal(out, &envelope); err != nil {
		b.Fatalf("%v in %.300s", err, out)
	}
}

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func median[T time.Duration | float64](values []T) T {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
