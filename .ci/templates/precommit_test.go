package templates

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/mattn/go-shellwords"
)

// hooks are the commands of .pre-commit-hooks.yaml as words, by id.
func hooks(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	for _, h := range load[[]struct{ ID, Entry string }](t, ".pre-commit-hooks.yaml") {
		words, err := shellwords.Parse(h.Entry)
		if err != nil || len(words) != 4 || words[0] != "sh" {
			t.Fatalf("%s: %v (%v)", h.ID, words, err)
		}
		out[h.ID] = words
	}
	return out
}

// TestPreCommit runs the hooks by pre-commit itself in repositories with files
// that start servers: once as users have them, built by pre-commit from the
// commit that is checked out, then with the binary that is here.
func TestPreCommit(t *testing.T) {
	t.Parallel()
	preCommit := need(t, "lint/bin/pre-commit")
	home, repo := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "invar"), invar(t), 0o755); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"PATH": home + ":" + os.Getenv("PATH"), "HOME": home, "NO_COLOR": "1", "PRE_COMMIT_COLOR": "never",
		"GIT_CONFIG_COUNT": "2", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "t", "GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "t@t",
	}
	manifest, err := filepath.Abs(filepath.Join(root, ".pre-commit-hooks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if code, out := execute(t, repo, env, preCommit, "validate-manifest", manifest); code != 0 {
		t.Fatalf("the manifest:\n%s", out)
	}

	good := "services:\n  llm:\n    image: vllm/vllm-openai:v0.32.0\n    environment: {VLLM_BATCH_INVARIANT: \"1\"}\n    command: vllm serve Qwen/Qwen3-8B\n"
	bad := strings.Replace(good, `"1"`, `"0"`, 1)
	unit := "[Service]\nExecStart=/usr/bin/vllm serve Qwen/Qwen3-8B\n"
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: llm}\nspec:\n  containers:\n    - {name: llm, image: \"vllm/vllm-openai:v0.32.0\", command: [vllm, serve, Qwen/Qwen3-8B]}\n"
	other := "services:\n  db:\n    image: postgres:17\n"
	t.Run("built by pre-commit", func(t *testing.T) {
		repo, real := t.TempDir(), merged(env, map[string]string{"PATH": os.Getenv("PATH")})
		for _, name := range []string{"GOMODCACHE", "GOCACHE", "GOPROXY", "GOFLAGS"} {
			_, real[name] = execute(t, root, map[string]string{"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME")}, "go", "env", name)
			real[name] = strings.TrimSpace(real[name])
		}
		write(t, filepath.Join(repo, "compose.yaml"), bad)
		for _, argv := range [][]string{{"git", "init", "-q"}, {"git", "add", "-A"}} {
			execute(t, repo, env, argv...)
		}
		_, commit := execute(t, root, map[string]string{"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME")}, "git", "rev-parse", "HEAD")
		from, err := filepath.Abs(root)
		if err != nil {
			t.Fatal(err)
		}
		code, out := execute(t, repo, real, preCommit, "try-repo", from, "invar-lint-compose", "--ref", strings.TrimSpace(commit), "--all-files", "--verbose")
		if code == 0 || !strings.Contains(out, "bi-off") {
			t.Errorf("exit code %d:\n%s", code, out)
		}
	})
	for name, tc := range map[string]struct {
		file, text string
		code       int // of invar: pre-commit prints it
		says       string
	}{
		"good":            {"compose.yaml", good, 0, "Passed"},
		"bad":             {"docker-compose.prod.yml", bad, 5, "bi-off"},
		"no engine":       {"compose.yaml", other, 0, "Passed"},
		"not its file":    {"values.yaml", bad, 0, "no files to check"},
		"systemd":         {"deploy/llm.service", unit, 5, "bi-off"},
		"kubernetes":      {"k8s/pod.yaml", pod, 5, "bi-off"},
		"script":          {"start.sh", "#!/bin/sh\nvllm serve Qwen/Qwen3-8B\n", 5, "bi-off"},
		"space in a name": {"my files/compose.yml", bad, 5, "bi-off"},
	} {
		t.Run(name, func(t *testing.T) {
			repo := t.TempDir()
			write(t, filepath.Join(repo, tc.file), tc.text)
			write(t, filepath.Join(repo, ".pre-commit-config.yaml"), localHooks(t))
			for _, argv := range [][]string{{"git", "init", "-q"}, {"git", "add", "-A"}} {
				if code, out := execute(t, repo, env, argv...); code != 0 {
					t.Fatal(out)
				}
			}
			code, out := execute(t, repo, env, preCommit, "run", "--all-files", "--verbose")
			if (code == 0) != (tc.code == 0) || !strings.Contains(out, tc.says) {
				t.Errorf("exit code %d, want %q:\n%s", code, tc.says, out)
			}
			if tc.code != 0 && !strings.Contains(out, "- exit code: 5") {
				t.Errorf("invar's exit code is lost:\n%s", out)
			}
		})
	}
}

// localHooks is the manifest as hooks of a repository, with arguments as its
// users give them.
func localHooks(t *testing.T) string {
	t.Helper()
	all := load[[]map[string]any](t, ".pre-commit-hooks.yaml")
	for _, h := range all {
		h["language"] = "system"
		h["args"] = []string{"--device", "cuda", "--engine-version", "0.32.0", "--arch", "9.0"}
	}
	b, err := yaml.Marshal(map[string]any{"repos": []any{map[string]any{"repo": "local", "hooks": all}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
