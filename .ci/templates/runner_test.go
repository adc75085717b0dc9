// Package templates runs the templates of ci/ and .github as far as a machine
// without their services can: what a runner would hand to a shell is handed to
// one, expressions are evaluated, steps of other actions are noted.
package templates

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// root is the repository.
const root = "../.."

// A step is one of an action or a job on GitHub.
type step struct {
	ID    string            `yaml:"id"`
	Name  string            `yaml:"name"`
	If    string            `yaml:"if"`
	Shell string            `yaml:"shell"`
	Run   string            `yaml:"run"`
	Uses  string            `yaml:"uses"`
	Dir   string            `yaml:"working-directory"`
	With  map[string]any    `yaml:"with"`
	Env   map[string]string `yaml:"env"`
}

// An action is ci/github/action.yml.
type action struct {
	Inputs  map[string]struct{ Default any }  `yaml:"inputs"`
	Outputs map[string]struct{ Value string } `yaml:"outputs"`
	Runs    struct{ Steps []step }            `yaml:"runs"`
}

// A workflow is one of .github/workflows.
type workflow struct {
	On   any
	Jobs map[string]struct {
		Steps []step
		Env   map[string]string
	}
}

func load[T any](t *testing.T, file string) T {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	var v T
	if err := yaml.Unmarshal(b, &v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

// A runner runs steps as GitHub's does, in folders of one test.
type runner struct {
	t       *testing.T
	work    string
	temp    string
	env     map[string]string
	path    []string          // put in front of PATH
	code    int               // of the first step that failed
	out     strings.Builder   // what steps printed
	summary string            // file
	used    map[string][]step // actions of others by repository, as they would run
	output  map[string]any    // steps.ID.outputs
}

func newRunner(t *testing.T, env map[string]string) *runner {
	t.Helper()
	r := &runner{t: t, work: t.TempDir(), temp: t.TempDir(), used: map[string][]step{}, output: map[string]any{}}
	r.summary = filepath.Join(r.temp, "summary.md")
	r.env = map[string]string{
		"PATH": os.Getenv("PATH"), "HOME": r.temp, "CI": "true", "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": r.work,
		"RUNNER_TEMP": r.temp, "GITHUB_STEP_SUMMARY": r.summary, "NO_COLOR": "1",
		"GITHUB_WORKFLOW_REF": "octo/repo/.github/workflows/check.yml@refs/heads/main",
	}
	maps.Copy(r.env, env)
	return r
}

// context is what expressions see beside inputs, matrix and needs.
func (r *runner) context(more map[string]any) map[string]any {
	ctx := map[string]any{
		"steps": r.output, "failed": r.code != 0, "runner": map[string]any{"temp": r.temp},
		"github": map[string]any{"actor": "octo", "token": "none", "ref_name": "v1.0.0", "repository": "octo/repo"},
	}
	maps.Copy(ctx, more)
	return ctx
}

// steps runs them in order and returns the exit code of the first that failed.
func (r *runner) steps(steps []step, more map[string]any) int {
	r.t.Helper()
	for _, s := range steps {
		ok, err := holds(s.If, r.context(more))
		if err != nil {
			r.t.Fatalf("step %q: if: %v", s.Name, err)
		}
		if !ok {
			continue
		}
		s = r.filled(s, more)
		switch {
		case strings.HasPrefix(s.Uses, "invar-ops/invar/ci/github@"):
			r.composite(s)
		case s.Uses != "":
			name, _, _ := strings.Cut(s.Uses, "@")
			r.used[name] = append(r.used[name], s)
		default:
			r.run(s)
		}
	}
	return r.code
}

// filled is s with its expressions evaluated. The script itself must have none:
// what an input holds would become code.
func (r *runner) filled(s step, more map[string]any) step {
	r.t.Helper()
	if placeholder.MatchString(s.Run) {
		r.t.Errorf("step %q: an expression in a script", s.Name)
	}
	text := func(v string) string {
		out, err := fill(v, r.context(more))
		if err != nil {
			r.t.Fatalf("step %q: %v", s.Name, err)
		}
		return out
	}
	env := map[string]string{}
	for k, v := range s.Env {
		env[k] = text(v)
	}
	with := map[string]any{}
	for k, v := range s.With {
		with[k] = text(asText(v))
	}
	s.Env, s.With, s.Dir = env, with, text(s.Dir)
	return s
}

// composite runs our own action with the inputs of s.
func (r *runner) composite(s step) {
	r.t.Helper()
	a := load[action](r.t, "ci/github/action.yml")
	inputs := map[string]any{}
	for name, in := range a.Inputs {
		inputs[name] = asText(in.Default)
	}
	for name, v := range s.With {
		if _, ok := a.Inputs[name]; !ok {
			r.t.Errorf("the action has no input %q", name)
		}
		inputs[name] = v
	}
	outer := r.output
	r.output = map[string]any{}
	r.steps(a.Runs.Steps, map[string]any{"inputs": inputs})
	outputs := map[string]any{}
	for name, o := range a.Outputs {
		v, err := fill(o.Value, r.context(map[string]any{"inputs": inputs}))
		if err != nil {
			r.t.Fatalf("output %s: %v", name, err)
		}
		outputs[name] = v
	}
	r.output = outer
	r.output[s.ID] = map[string]any{"outputs": outputs}
}

// run hands a script to bash, as the runner documents it: with pipefail where
// the step names bash, without where it names no shell.
func (r *runner) run(s step) {
	r.t.Helper()
	script := filepath.Join(r.t.TempDir(), "script.sh")
	output, path := script+".output", script+".path"
	for name, text := range map[string]string{script: s.Run, output: "", path: ""} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	argv := []string{"bash", "-e", script}
	if s.Shell == "bash" {
		argv = []string{"bash", "--noprofile", "--norc", "-eo", "pipefail", script}
	}
	env := maps.Clone(r.env)
	maps.Copy(env, s.Env)
	env["GITHUB_OUTPUT"], env["GITHUB_PATH"] = output, path
	env["PATH"] = strings.Join(append(r.path[:len(r.path):len(r.path)], env["PATH"]), ":")
	code, out := execute(r.t, filepath.Join(r.work, s.Dir), env, argv...)
	r.out.WriteString(out)
	if r.code == 0 {
		r.code = code
	}
	outputs := map[string]any{}
	for line := range strings.Lines(read(r.t, output)) {
		k, v, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		outputs[k] = v
	}
	r.output[s.ID] = map[string]any{"outputs": outputs}
	for line := range strings.Lines(read(r.t, path)) {
		r.path = append([]string{strings.TrimSuffix(line, "\n")}, r.path...)
	}
}

// get is an output of a step.
func (r *runner) get(id, name string) string {
	s, _ := r.output[id].(map[string]any)
	o, _ := s["outputs"].(map[string]any)
	return asText(o[name])
}

// execute runs argv with nothing but env and returns its exit code and output.
func execute(t *testing.T, dir string, env map[string]string, argv ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, []string{}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return exit.ExitCode(), string(out)
	case err != nil:
		t.Fatalf("%s: %v", strings.Join(argv, " "), err)
	}
	return 0, string(out)
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
