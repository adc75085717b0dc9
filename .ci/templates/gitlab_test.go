package templates

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A gitlabJob is a job after its extends were resolved.
type gitlabJob struct {
	before, script []string
	variables      map[string]string
	paths          []string
	junit          string
}

// gitlab resolves a job of ci/gitlab.yml as GitLab does: mappings are merged,
// lists replaced.
func gitlab(t *testing.T, name string) gitlabJob {
	t.Helper()
	all := load[map[string]map[string]any](t, "ci/gitlab.yml")
	var resolve func(name string) map[string]any
	resolve = func(name string) map[string]any {
		job, ok := all[name]
		if !ok {
			t.Fatalf("ci/gitlab.yml has no job %q", name)
		}
		if base, ok := job["extends"].(string); ok {
			return merge(resolve(base), job)
		}
		return job
	}
	job := resolve(name)
	out := gitlabJob{before: list(job["before_script"]), script: list(job["script"]), variables: map[string]string{}}
	for k, v := range job["variables"].(map[string]any) {
		out.variables[k] = asText(v)
	}
	artifacts := job["artifacts"].(map[string]any)
	out.paths = list(artifacts["paths"])
	if reports, ok := artifacts["reports"].(map[string]any); ok {
		out.junit = asText(reports["junit"])
	}
	if artifacts["when"] != "always" {
		t.Errorf("%s: a failed job keeps no reports", name)
	}
	return out
}

func merge(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	for k, v := range over {
		a, both := out[k].(map[string]any)
		if b, ok := v.(map[string]any); ok && both {
			v = merge(a, b)
		}
		out[k] = v
	}
	return out
}

func list(v any) []string {
	var out []string
	items, _ := v.([]any)
	for _, i := range items {
		out = append(out, asText(i))
	}
	return out
}

// run is the job in one shell, before_script and script together.
func (j gitlabJob) run(t *testing.T, shell []string, r *release, env map[string]string) (dir string, code int, out string) {
	t.Helper()
	dir = t.TempDir()
	all := map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir, "CI": "true", "GITLAB_CI": "true", "CI_PROJECT_DIR": dir, "NO_COLOR": "1"}
	maps.Copy(all, j.variables)
	all["INVAR_URL"] = r.url
	maps.Copy(all, env)
	script := filepath.Join(t.TempDir(), "job.sh")
	if err := os.WriteFile(script, []byte("set -e\n"+strings.Join(append(j.before, j.script...), "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out = execute(t, dir, all, append(shell[:len(shell):len(shell)], script)...)
	return dir, code, out
}

func TestGitLab(t *testing.T) {
	t.Parallel()
	for _, shell := range shells {
		r := serve(t)
		_, code, out := gitlab(t, ".invar-image").run(t, shell, r, map[string]string{"INVAR_ARGS": "cpu --builder kaniko"})
		if code != 2 || !strings.Contains(out, "unknown builder") {
			t.Errorf("%v: exit code %d, want 2:\n%s", shell, code, out)
		}
		dir, code, out := gitlab(t, ".invar-lint").run(t, shell, r, map[string]string{"INVAR_ARGS": "--device cuda --engine-version 0.26.0 -- vllm serve m"})
		if _, err := os.Stat(filepath.Join(dir, ".invar/reports/invar.sarif")); code != 5 || err != nil {
			t.Errorf("%v: exit code %d, want 5 (%v):\n%s", shell, code, err, out)
		}
		// The wrong binary is not installed, and nothing after it runs.
		dir, code, out = gitlab(t, ".invar-lint").run(t, shell, r, map[string]string{"INVAR_SHA256": strings.Repeat("0", 64), "INVAR_ARGS": "-- vllm serve m"})
		if _, err := os.Stat(filepath.Join(dir, ".invar/bin/invar")); code != 1 || err == nil || strings.Contains(out, "vllm") {
			t.Errorf("%v: exit code %d (%v), want 1 and nothing installed:\n%s", shell, code, err, out)
		}
	}
	if v := gitlab(t, ".invar").variables["INVAR_VERSION"]; v != version(t) {
		t.Errorf("installs %s, this is %s", v, version(t))
	}
}

func damagedOnGitLab(t *testing.T, env map[string]string, r *release) {
	job := gitlab(t, ".invar-probe")
	dir, code, out := job.run(t, []string{"bash"}, r, merged(env, map[string]string{"INVAR_ARGS": "--level 2"}))
	if code != 5 {
		t.Errorf("exit code %d, want 5:\n%s", code, out)
	}
	wellFormed(t, filepath.Join(dir, job.junit), 1)
	if len(job.paths) != 1 {
		t.Fatalf("kept: %v", job.paths)
	}
	if kept, _ := os.ReadDir(filepath.Join(dir, job.paths[0])); len(kept) != 2 {
		t.Errorf("reports: %v, want JUnit and SARIF", kept)
	}
	// verify finds the same damage, or nothing to verify: no success.
	if _, code, out := gitlab(t, ".invar-verify").run(t, []string{"bash"}, r, map[string]string{"INVAR_ARGS": "nothing"}); code != 2 {
		t.Errorf("verify nothing: exit code %d, want 2:\n%s", code, out)
	}
}

func merged(sets ...map[string]string) map[string]string {
	out := map[string]string{}
	for _, s := range sets {
		maps.Copy(out, s)
	}
	return out
}
