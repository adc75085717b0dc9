package deployment

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/scripts"
)

// PythonFile reads the calls that start an engine in a Python file: LLM(...),
// EngineArgs(...), with arguments that are literals, and os.environ[...] = "...";
// the commands of subprocess.run([...]) and os.system("...") too.
// The file is parsed by the given interpreter and never run.
func PythonFile(ctx context.Context, r run.Runner, env []string, interpreter, where string, b []byte) ([]Deployment, error) {
	source, err := scripts.FS.ReadFile(scripts.Calls)
	if err != nil {
		return nil, err
	}
	res, err := r.Run(ctx, run.Cmd{
		Argv: []string{interpreter, "-I", "-S", "-c", string(source)}, Env: env,
		Stdin: strings.NewReader(string(b)), Timeout: 30 * time.Second,
	})
	if err != nil {
		if run.NotFound(err) {
			return nil, report.Problemf(report.Unmet, "%s is Python, and there is no interpreter to parse it", where).
				WithHint("apt-get install python3, or name one with --python")
		}
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	var answer struct {
		Error string `json:"error"`
		Calls []struct {
			Line     int               `json:"line"`
			Args     []string          `json:"args"`
			Env      map[string]string `json:"env"`
			Problems []string          `json:"problems"`
			Command  []string          `json:"command"` // of a process that the file starts
			Script   string            `json:"script"`  // the same, for a shell
		} `json:"calls"`
	}
	if err := json.Unmarshal(res.Stdout, &answer); err != nil {
		return nil, fmt.Errorf("%s: the parser's answer: %w", where, err)
	}
	if answer.Error != "" {
		return nil, report.Problemf(report.Inconclusive, "%s is not Python that this interpreter can parse", where).
			WithWant("a Python file", answer.Error)
	}
	var out []Deployment
	for _, c := range answer.Calls {
		switch {
		case c.Script != "":
			out = append(out, below(c.Env, c.Line, Shell(where, c.Script))...)
		case c.Command != nil:
			out = append(out, below(c.Env, c.Line, Command(where, c.Command))...)
		default:
			out = append(out, Deployment{Where: where, Line: c.Line, Argv: append([]string{LLM}, c.Args...), Env: c.Env, Problems: c.Problems})
		}
	}
	return out, nil
}

// below gives deployments the environment that lies below their own, and a line.
func below(env map[string]string, line int, found []Deployment) []Deployment {
	for i := range found {
		merged := maps.Clone(env)
		maps.Copy(merged, found[i].Env)
		found[i].Env, found[i].Line = merged, line
	}
	return found
}
