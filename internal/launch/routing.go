package launch

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

// routingVariable names the folder into which each worker of a vLLM server
// with invar's plugin writes what it routes.
const routingVariable = "INVAR_ROUTING_DIR"

// A Routing is what one worker wrote.
type Routing struct {
	Schema  string         `json:"schema"`
	Linear  map[string]int `json:"linear"`
	Modules map[string]int `json:"modules"`
	Worker  struct {
		Rank    int    `json:"rank"`
		Dtype   string `json:"dtype"`
		Threads int    `json:"threads"`
	} `json:"worker"`
	Operators map[string]string `json:"operators"`
	Steps     int               `json:"steps"`
}

// Text is what is routed, in one line.
func (r Routing) Text() string {
	return fmt.Sprintf("worker %d runs invar's operators: %d linear layers, %d norms, %d attention layers, %s, %d threads, contract %s",
		r.Worker.Rank, r.Modules["linear"], r.Modules["norm"], r.Modules["attention"], r.Worker.Dtype, r.Worker.Threads, r.Operators["contract"])
}

// wantsRouting reports whether c is a vLLM server that was asked to use
// invar's operators.
func (c Command) wantsRouting(env []string) bool {
	return run.Getenv(env, "INVAR_BATCH_INVARIANT") == "1" && slices.ContainsFunc(c.Argv, func(a string) bool {
		return filepath.Base(a) == "vllm" || strings.HasPrefix(a, "vllm.")
	})
}

// routed reads the records. A server that was asked to use the operators and
// has none runs without them: vLLM swallows what goes wrong in a plugin.
func (s *Server) routed() error {
	if s.routing == "" {
		return nil
	}
	all, err := s.Routing()
	if err != nil {
		return err
	}
	if len(all) > 0 {
		return nil
	}
	p := report.Problemf(report.CheckFailed, "the server runs, but no worker has invar's operators though INVAR_BATCH_INVARIANT=1 is set").
		WithWant("a record in "+s.routing, "none").WithHint("are the operators installed in this environment: invar probe --python ENV")
	p.Log = s.Log
	return p
}

// Routing is what the workers wrote so far.
func (s *Server) Routing() ([]Routing, error) {
	if s.routing == "" {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(s.routing, "routing-*.json"))
	if err != nil {
		return nil, err
	}
	var out []Routing
	for _, f := range files {
		b, err := os.ReadFile(filepath.Clean(f))
		if err != nil {
			return nil, err
		}
		var r Routing
		if err := json.Unmarshal(b, &r); err != nil || r.Schema != "invar.routing" {
			return nil, fmt.Errorf("%s is no routing record: %w", f, err)
		}
		if r.Modules["linear"]+len(r.Linear) > 0 {
			out = append(out, r)
		}
	}
	return out, nil
}
