package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/invar-ops/invar/internal/testkit"
)

// BenchmarkOperators installs the operators of this tree and lets the scripts
// in targets/cpu/bench time them inside one process with torch and oneDNN.
func BenchmarkOperators(b *testing.B) {
	p := newPlace(b)
	p.invar(b, "build", "cpu", "--python", p.python)
	for _, script := range []string{"rows.py", "routing.py", "matmul.py"} {
		operators(b, p, filepath.Join("..", "..", "targets", "cpu", "bench", script))
	}
}

// BenchmarkVLLM times the products beside vLLM's own build of oneDNN, in the
// environment that holds vLLM and with its torch.
func BenchmarkVLLM(b *testing.B) {
	pattern := filepath.Join(testkit.Cache(), "vllm", "vllm", "*", "env")
	found, err := filepath.Glob(pattern)
	must(b, err)
	if len(found) == 0 {
		b.Skip("needs an environment with vLLM for the CPU: nothing at " + pattern + "; .ci/setup makes it")
	}
	b.Setenv("INVAR_BENCH_ENV", found[len(found)-1])
	p := newPlace(b)
	p.invar(b, "build", "cpu", "--python", p.python)
	operators(b, p, filepath.Join("..", "..", "targets", "cpu", "bench", "matmul.py"))
}

// operators gives each row of a script a benchmark of its own as it comes.
func operators(b *testing.B, p place, script string) {
	b.Helper()
	cmd := exec.Command(p.python, script)
	var log bytes.Buffer
	cmd.Env, cmd.Stderr = p.env(), &log
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	rows := 0
	for lines := bufio.NewScanner(out); lines.Scan(); rows++ {
		var row struct {
			Name    string             `json:"name"`
			Metrics map[string]float64 `json:"metrics"`
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			b.Errorf("%s printed %q: %v", script, lines.Text(), err)
			continue
		}
		b.Run(row.Name, func(b *testing.B) {
			for b.Loop() { // it was measured in there
			}
			for unit, value := range row.Metrics {
				b.ReportMetric(value, unit)
			}
		})
	}
	if err := cmd.Wait(); err != nil || rows == 0 {
		b.Fatalf("%s: %d rows, %v\n%s", script, rows, err, log.String())
	}
	if log.Len() > 0 {
		b.Logf("%s", log.String())
	}
}
