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

	"github.com/invar-ops/invar/internal/run"
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

// environment is the shared environment with torch: INVAR_BENCH_ENV, else the
// newest that .ci/setup makes.
func environment(b *testing.B) string {
	b.Helper()
	if dir := os.Getenv("INVAR_BENCH_ENV"); dir != "" {
		return dir
	}
	cache := os.Getenv("INVAR_CI_CACHE")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache", "invar-ci")
	}
	dir := filepath.Join(cache, "torch-2.15")
	if _, err := os.Stat(filepath.Join(dir, ".ready")); err != nil {
		text := "needs an environment with torch and numpy in " + dir + " (.ci/setup makes it)"
		if os.Getenv("INVAR_CI") == "1" {
			b.Fatal(text)
		}
		b.Skip(text)
	}
	return dir
}

// privatePython links everything in the shared environment into a new one, so
// that the hook of a measured build goes nowhere else.
func privatePython(b *testing.B) string {
	b.Helper()
	shared, dir := environment(b), b.TempDir()
	sites, err := filepath.Glob(filepath.Join(shared, "lib", "python3.*", "site-packages"))
	if err != nil || len(sites) != 1 {
		b.Fatalf("site-packages of %s: got %v, %v; want one", shared, sites, err)
	}
	rel, err := filepath.Rel(shared, sites[0])
	must(b, err)
	site := filepath.Join(dir, rel)
	must(b, os.MkdirAll(site, 0o755))
	must(b, os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	entries, err := os.ReadDir(sites[0])
	must(b, err)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "batch_invariant_ops") || strings.Contains(e.Name(), "invar.pth") || e.Name() == "__pycache__" {
			continue
		}
		must(b, os.Symlink(filepath.Join(sites[0], e.Name()), filepath.Join(site, e.Name())))
	}
	cfg, err := os.ReadFile(filepath.Join(shared, "pyvenv.cfg"))
	must(b, err)
	must(b, os.WriteFile(filepath.Join(dir, "pyvenv.cfg"), cfg, 0o644))
	base, err := filepath.EvalSymlinks(filepath.Join(shared, "bin", "python"))
	must(b, err)
	exe := filepath.Join(dir, "bin", "python")
	must(b, os.Symlink(base, exe))
	return exe
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
	cmd := exec.Command(argv[0], argv[1:]...)
	var out, log bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env(), &out, &log
	start := time.Now()
	err := cmd.Run()
	took := time.Since(start)
	if err != nil {
		b.Fatalf("%s: %v\n%s%s", strings.Join(argv, " "), err, log.String(), out.String())
	}
	return out.Bytes(), took
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
