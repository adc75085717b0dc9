package templates

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A pipeline is what ci/Jenkinsfile gives to shells.
type pipeline struct {
	parameters map[string]string // with their defaults
	env        map[string]string
	stages     []string
	scripts    map[string]string // of stages
}

func jenkins(t *testing.T) pipeline {
	t.Helper()
	text := read(t, filepath.Join(root, "ci/Jenkinsfile"))
	p := pipeline{parameters: map[string]string{}, env: map[string]string{}, scripts: map[string]string{}}
	for _, m := range regexp.MustCompile(`string\(name: '(\w+)', defaultValue: '([^']*)'`).FindAllStringSubmatch(text, -1) {
		p.parameters[m[1]] = m[2]
	}
	for _, m := range regexp.MustCompile(`(?m)^    (\w+) = "(.*)"$`).FindAllStringSubmatch(text, -1) {
		p.env[m[1]] = m[2]
	}
	for _, m := range regexp.MustCompile(`(?s)stage\('(\w+)'\).*?sh '''(.*?)'''`).FindAllStringSubmatch(text, -1) {
		p.stages = append(p.stages, m[1])
		p.scripts[m[1]] = m[2]
	}
	if len(p.stages) != 3 || len(p.parameters) != 5 || len(p.env) != 2 || strings.Count(text, "sh '''") != len(p.stages) {
		t.Fatalf("read %d stages, %d parameters, %d variables: the test does not see all of the file", len(p.stages), len(p.parameters), len(p.env))
	}
	return p
}

// run hands the steps of the stages to the shell that their first line names.
func (p pipeline) run(t *testing.T, r *release, given map[string]string, stages ...string) (dir string, code int, out string) {
	t.Helper()
	dir = t.TempDir()
	env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": dir, "WORKSPACE": dir, "NO_COLOR": "1"}
	maps.Copy(env, p.parameters)
	for k, v := range p.env {
		env[k] = strings.ReplaceAll(v, "${WORKSPACE}", dir)
	}
	env["INVAR_URL"] = r.url
	maps.Copy(env, given)
	for _, s := range stages {
		script := filepath.Join(t.TempDir(), "script.sh")
		if !strings.HasPrefix(p.scripts[s], "#!/bin/sh\n") {
			t.Fatalf("stage %s: no shell is named", s)
		}
		if err := os.WriteFile(script, []byte(p.scripts[s]), 0o755); err != nil {
			t.Fatal(err)
		}
		var said string
		code, said = execute(t, dir, env, "/bin/sh", script)
		if out += said; code != 0 {
			break
		}
	}
	return dir, code, out
}

func TestJenkins(t *testing.T) {
	t.Parallel()
	p, r := jenkins(t), serve(t)
	if v := p.parameters["INVAR_VERSION"]; v != version(t) {
		t.Errorf("installs %s, this is %s", v, version(t))
	}
	dir, code, out := p.run(t, r, map[string]string{"INVAR_VERIFY": "nothing"}, "install", "verify")
	if code != 2 {
		t.Errorf("exit code %d, want 2:\n%s", code, out)
	}
	if got := read(t, filepath.Join(dir, ".invar/bin/invar")); got != string(invar(t)) {
		t.Error("another program was installed")
	}
	dir, code, out = p.run(t, r, map[string]string{"INVAR_SHA256": strings.Repeat("0", 64)}, p.stages...)
	if _, err := os.Stat(filepath.Join(dir, ".invar/bin/invar")); code != 1 || err == nil {
		t.Errorf("exit code %d (%v), want 1 and nothing installed:\n%s", code, err, out)
	}
}

func damagedOnJenkins(t *testing.T, env map[string]string, r *release) {
	dir, code, out := jenkins(t).run(t, r, merged(env, map[string]string{"INVAR_ARGS": "cpu --level 2"}), "install", "probe", "verify")
	if code != 5 {
		t.Errorf("exit code %d, want 5:\n%s", code, out)
	}
	wellFormed(t, filepath.Join(dir, ".invar/reports/probe.xml"), 1)
}
