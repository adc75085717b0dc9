package lookalike

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/testkit"
	"github.com/invar-ops/invar/internal/testkit/cann"
)

// invar is the program, built once.
var invar string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "invar-lookalike-")
	if err != nil {
		panic(err)
	}
	invar = filepath.Join(dir, "invar")
	res, err := run.System{}.Run(context.Background(), run.Cmd{Argv: []string{"go", "build", "-o", invar, "github.com/invar-ops/invar/cmd/invar"}, Env: os.Environ()})
	code := 1
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, res.Stderr)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// socs are the targets with a chip of each, as CANN and npu-smi name it.
var socs = []struct{ target, chip, machine, soc string }{
	{"ascend910b", "Ascend910B4", "a2", "ascend910b4"},
	{"ascend910_93", "Ascend910_9392", "a3", "ascend910_9392"},
	{"ascend950", "Ascend950PR_9579", "950", "ascend950pr_9579"},
}

// A machine is one host with CANN, an npu-smi, a Python with the real torch_npu
// and a prefix for invar.
type machine struct {
	t      *testing.T
	cann   *cann.Tree
	py     python.Python
	home   string
	prefix string
	bin    string // first on PATH
}

func newMachine(t *testing.T, target string) *machine {
	t.Helper()
	i := slices.IndexFunc(socs, func(s struct{ target, chip, machine, soc string }) bool { return s.target == target })
	s := socs[i]
	dir := t.TempDir()
	m := &machine{t: t, home: filepath.Join(dir, "home"), prefix: filepath.Join(dir, "prefix"), bin: filepath.Join(dir, "bin")}
	for _, d := range []string{m.home, m.bin} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if m.py, err = testkit.Private(testkit.Need(t, cann.Environment), filepath.Join(dir, "venv")); err != nil {
		t.Fatal(err)
	}
	m.cann = cann.New(t, cann.Options{SoC: s.chip})
	cann.NpuSmi(t, m.bin, s.machine)
	return m
}

// env is what a user has who sourced nothing.
func (m *machine) env(more ...string) []string {
	env := append(m.cann.Bare(), "INVAR_HOME="+m.prefix, "INVAR_CANN="+m.cann.Home, "NO_COLOR=1")
	env = append(env, "HOME="+m.home, "PATH="+strings.Join([]string{m.bin, filepath.Dir(m.py.Exe), "/usr/local/bin", "/usr/bin", "/bin"}, ":"))
	// Whatever goes past the machine's own mirror ends here, not on the network.
	env = append(env, "https_proxy=http://127.0.0.1:9", "no_proxy=127.0.0.1")
	return append(env, more...)
}

// invar runs the program on the machine and wants it to end with code.
func (m *machine) invar(code int, args ...string) string {
	m.t.Helper()
	return m.invarIn(code, nil, args...)
}

func (m *machine) invarIn(code int, more []string, args ...string) string {
	m.t.Helper()
	res, err := run.System{}.Run(m.t.Context(), run.Cmd{Argv: append([]string{invar}, args...), Dir: m.home, Env: m.env(more...)})
	if res.Code != code {
		m.t.Fatalf("invar %s ended with %d, want %d (%v)\n%s%s", strings.Join(args, " "), res.Code, code, err, res.Stdout, res.Stderr)
	}
	return string(res.Stdout) + string(res.Stderr)
}
