package templates

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// use is a step that uses our action, with r's release.
func use(r *release, with map[string]any) []step {
	with["url"] = r.url
	return []step{{ID: "invar", Uses: "invar-ops/invar/ci/github@v0", With: with}}
}

const (
	keep = "actions/upload-artifact"
	scan = "github/codeql-action/upload-sarif"
)

// TestAction: the action over a real installation, good and then damaged, and
// the pipelines of the others over the same.
func TestAction(t *testing.T) {
	t.Parallel()
	env := installed(t)
	r := serve(t)

	run := newRunner(t, env)
	code := run.steps(use(r, map[string]any{
		"sha256": r.digest, "args": "cpu --level 4 --require 4", "report": "cpu", "code-scanning": "true",
	}), nil)
	if code != 0 || run.get("invar", "exit-code") != "0" {
		t.Fatalf("exit code %d, output %q:\n%s", code, run.get("invar", "exit-code"), run.out.String())
	}
	wellFormed(t, filepath.Join(run.get("invar", "reports"), "junit.xml"), 0)
	if len(run.used[scan]) != 1 || run.used[scan][0].With["sarif_file"] != filepath.Join(run.get("invar", "reports"), "invar.sarif") || run.used[scan][0].With["category"] != "invar-probe" {
		t.Errorf("code scanning got %+v", run.used[scan])
	}
	if len(run.used[keep]) != 1 || run.used[keep][0].With["name"] != "cpu" || run.used[keep][0].With["path"] != run.get("invar", "reports") {
		t.Errorf("kept %+v", run.used[keep])
	}
	if s := read(t, run.summary); !strings.Contains(s, "### invar probe: cpu, proved to level 4") {
		t.Errorf("summary:\n%s", s)
	}

	// What follows finds the program on PATH.
	if code := run.steps([]step{{Run: "invar verify ops --list >/dev/null"}}, nil); code != 0 {
		t.Errorf("invar is not on PATH:\n%s", run.out.String())
	}

	t.Run("verify", func(t *testing.T) {
		run := newRunner(t, env)
		code := run.steps(use(r, map[string]any{"run": "verify", "args": "ops --op mm --dtype float32 --rows 1,2,17", "report": "ops"}), nil)
		if code != 0 {
			t.Fatalf("exit code %d:\n%s", code, run.out.String())
		}
		wellFormed(t, filepath.Join(run.get("invar", "reports"), "junit.xml"), 0)
		if s := read(t, run.summary); !strings.Contains(s, "### invar verify: exit code 0") {
			t.Errorf("summary:\n%s", s)
		}
		if len(run.used[scan]) != 0 || len(run.used[keep]) != 1 {
			t.Errorf("used %v", run.used)
		}
	})

	spoil(t, env)
	run = newRunner(t, env)
	code = run.steps(append(use(r, map[string]any{"args": "--level 2", "report": "cpu", "code-scanning": "true"}), step{Run: "touch later"}), nil)
	if code != 5 || run.get("invar", "exit-code") != "5" {
		t.Fatalf("exit code %d, output %q, want 5:\n%s", code, run.get("invar", "exit-code"), run.out.String())
	}
	wellFormed(t, filepath.Join(run.get("invar", "reports"), "junit.xml"), 1)
	if len(run.used[keep]) != 1 || len(run.used[scan]) != 1 {
		t.Fatalf("a failed probe keeps its reports: %v", run.used)
	}
	located(t, asText(run.used[scan][0].With["sarif_file"]), ".github/workflows/check.yml")
	if !strings.Contains(run.out.String(), "::error title=probe level 1::") {
		t.Errorf("no annotation:\n%s", run.out.String())
	}
	if _, err := os.Stat(filepath.Join(run.work, "later")); err == nil {
		t.Error("the job went on")
	}
	t.Run("gitlab", func(t *testing.T) { damagedOnGitLab(t, env, r) })
	t.Run("jenkins", func(t *testing.T) { damagedOnJenkins(t, env, r) })
}

// TestActionOnly is what needs no installation.
func TestActionOnly(t *testing.T) {
	t.Parallel()
	compose := "services:\n  llm:\n    image: vllm/vllm-openai:v0.26.0\n    command: vllm serve deepseek-ai/DeepSeek-V3 -dp 4\n"
	for _, tc := range []struct {
		name    string
		with    map[string]any
		code    int
		out     string
		summary string
	}{
		{"install only", map[string]any{"run": "none", "report": "x"}, 0, "invar ", ""},
		{"lint", map[string]any{"run": "lint", "args": "--device cuda --arch 9.0 --engine-version 0.26.0 compose.yaml", "code-scanning": "true", "report": "x"}, 5, "bi-off", "### invar lint: exit code 5"},
		{"lint of a command", map[string]any{"run": "lint", "args": "--device cuda --engine-version 0.26.0 -- vllm serve m"}, 5, "bi-off", ""},
		{"arguments on lines", map[string]any{"run": "image", "args": "plan\ncpu\n--os debian12\n"}, 0, "cpu-debian12", "### invar image: exit code 0"},
		{"nothing is installed", map[string]any{"args": "--root ."}, 5, "no operators of invar", "### invar probe: exit code 5"},
		{"usage", map[string]any{"args": "--level 99"}, 2, "want 1 to 7", ""},
		{"no builder", map[string]any{"run": "image", "args": "build cpu --builder docker"}, 3, "no builder", "### invar image: exit code 3"},
		{"unknown command", map[string]any{"run": "uninstall"}, 2, "::error title=invar::", ""},
		{"code in an argument", map[string]any{"run": "image", "args": "plan $(touch pwned) ;touch pwned `touch pwned`"}, 2, "unknown image", ""},
		{"code in the command", map[string]any{"run": "probe; touch pwned"}, 2, "::error title=invar::", ""},
		{"wrong digest", map[string]any{"sha256": strings.Repeat("0", 64), "report": "x"}, 1, "as INVAR_SHA256 says", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			run := newRunner(t, map[string]string{"INVAR_HOME": t.TempDir(), "PATH": withoutDocker(t)})
			if err := os.WriteFile(filepath.Join(run.work, "compose.yaml"), []byte(compose), 0o644); err != nil {
				t.Fatal(err)
			}
			code := run.steps(use(serve(t), tc.with), nil)
			if code != tc.code || !strings.Contains(run.out.String(), tc.out) {
				t.Errorf("exit code %d, want %d and %q:\n%s", code, tc.code, tc.out, run.out.String())
			}
			if b, err := os.ReadFile(run.summary); tc.summary != "" && !strings.Contains(string(b), tc.summary) {
				t.Errorf("summary (%v):\n%s", err, b)
			}
			if _, err := os.Stat(filepath.Join(run.work, "pwned")); err == nil {
				t.Error("an argument was run")
			}
			_, err := os.Stat(filepath.Join(run.temp, "invar/bin/invar"))
			if there := err == nil; there == (tc.name == "wrong digest") {
				t.Errorf("installed: %v", there)
			}
			if n := len(run.used[scan]); n != 0 && tc.with["code-scanning"] == nil || n != 1 && tc.with["code-scanning"] != nil {
				t.Errorf("%d uploads to code scanning", n)
			}
			if tc.name == "lint" {
				located(t, asText(run.used[scan][0].With["sarif_file"]), "compose.yaml")
			}
			if want := tc.with["report"] != nil && tc.with["run"] != "none" && tc.name != "wrong digest"; (len(run.used[keep]) == 1) != want {
				t.Errorf("kept %v", run.used[keep])
			}
		})
	}
}

// located checks that every result of a SARIF file has a file of the repository:
// code scanning refuses the upload otherwise.
func located(t *testing.T, file, want string) {
	t.Helper()
	var log struct {
		Runs []struct {
			Results []struct {
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(read(t, file)), &log); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, r := range log.Runs {
		for _, res := range r.Results {
			n++
			if len(res.Locations) == 0 || res.Locations[0].PhysicalLocation.ArtifactLocation.URI != want {
				t.Errorf("result %d: %+v, want the file %s", n, res.Locations, want)
			}
		}
	}
	if n == 0 {
		t.Error("no results")
	}
}

// withoutDocker is a PATH on which docker does not answer.
func withoutDocker(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\necho Cannot connect to the Docker daemon >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir + ":" + os.Getenv("PATH")
}
