package templates

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/rhysd/actionlint"
)

func workflows(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("workflows: %v (%v)", files, err)
	}
	return files
}

// lint is what actionlint, with shellcheck on the scripts, has against a workflow.
func lint(t *testing.T, file string, content []byte) []string {
	t.Helper()
	l, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{Shellcheck: "shellcheck"})
	if err != nil {
		t.Fatal(err)
	}
	found, err := l.Lint(file, content, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range found {
		out = append(out, f.Error())
	}
	return out
}

func TestActionlint(t *testing.T) {
	t.Parallel()
	for _, f := range workflows(t) {
		if found := lint(t, f, []byte(read(t, f))); len(found) > 0 {
			t.Errorf("%s:\n%s", f, strings.Join(found, "\n"))
		}
	}
	// The linter sees mistakes of the kinds that matter here.
	for name, text := range map[string]string{
		"script":     "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps: [{run: 'for f in $x; do rm $f; done; cd $y'}]\n",
		"expression": "on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps: [{run: 'echo ${{ inputs.nothing.at.all }}'}]\n",
		"untrusted":  "on: pull_request\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps: [{run: 'echo ${{ github.event.pull_request.title }}'}]\n",
		"needs":      "on: push\njobs:\n  a:\n    needs: b\n    runs-on: ubuntu-24.04\n    steps: [{run: 'true'}]\n",
	} {
		if len(lint(t, name+".yml", []byte(text))) == 0 {
			t.Errorf("%s: nothing was found", name)
		}
	}
}

// TestExamples: the workflows that docs and comments show are workflows.
func TestExamples(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(read(t, filepath.Join(root, "docs/ci.md")), -1) {
		var top map[string]any
		if err := yaml.Unmarshal([]byte(m[1]), &top); err != nil {
			var items []any // a pre-commit list
			if err := yaml.Unmarshal([]byte(m[1]), &items); err != nil {
				t.Errorf("docs/ci.md: %v\n%s", err, m[1])
			}
			continue
		}
		if top["on"] == nil {
			continue
		}
		seen++
		if found := lint(t, "docs/ci.md", []byte(m[1])); len(found) > 0 {
			t.Errorf("docs/ci.md:\n%s\n%s", strings.Join(found, "\n"), m[1])
		}
	}
	if seen == 0 {
		t.Error("docs/ci.md shows no workflow")
	}
}

// TestSchemas: yamllint, and the schemas of the services as check-jsonschema ships them.
func TestSchemas(t *testing.T) {
	t.Parallel()
	bin := filepath.Dir(need(t, "lint/bin/yamllint"))
	need(t, "lint/bin/check-jsonschema")
	files := []string{"ci/github/action.yml", "ci/gitlab.yml", ".pre-commit-hooks.yaml"}
	for _, w := range workflows(t) {
		rel, err := filepath.Rel(root, w)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, rel)
	}
	env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": t.TempDir()}
	rules := `{extends: default, rules: {line-length: {max: 200}, document-start: disable, truthy: {check-keys: false}, comments: {min-spaces-from-content: 1}}}`
	if code, out := execute(t, root, env, append([]string{filepath.Join(bin, "yamllint"), "--strict", "-d", rules}, files...)...); code != 0 {
		t.Errorf("yamllint:\n%s", out)
	}
	for _, f := range files {
		schema := map[string]string{"action.yml": "github-actions", "gitlab.yml": "gitlab-ci"}[filepath.Base(f)]
		if strings.HasPrefix(f, ".github/workflows/") {
			schema = "github-workflows"
		}
		if schema == "" {
			continue
		}
		// GitLab's schema passes over hidden jobs: they are read as what extends them.
		text := regexp.MustCompile(`(?m)^(  extends: )?\.invar`).ReplaceAllString(read(t, filepath.Join(root, f)), "${1}invar")
		spoiled := strings.ReplaceAll(regexp.MustCompile(`(?m)^(runs|jobs):`).ReplaceAllString(text, "$1: 1\nx-$1:"), "when: always", "when: sometimes")
		for content, good := range map[string]bool{text: true, spoiled: false} {
			file := filepath.Join(t.TempDir(), filepath.Base(f))
			write(t, file, content)
			code, out := execute(t, root, env, filepath.Join(bin, "check-jsonschema"), "--builtin-schema", "vendor."+schema, file)
			if (code == 0) != good {
				t.Errorf("%s, valid: %v:\n%s", f, good, out)
			}
		}
	}
}

// TestPins: what others wrote is named by a full commit, what is ours by this
// release, and nothing may write that need not.
func TestPins(t *testing.T) {
	t.Parallel()
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+(/[\w-]+)*@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	ours := "invar-ops/invar/ci/github@v" + version(t)
	uses := regexp.MustCompile(`(?m)^\s*(?:- )?uses: (.*)$`)
	seen := 0
	for _, f := range append(workflows(t), filepath.Join(root, "ci/github/action.yml")) {
		text := read(t, f)
		for _, m := range uses.FindAllStringSubmatch(text, -1) {
			seen++
			if m[1] != ours && !pinned.MatchString(m[1]) {
				t.Errorf("%s: uses %s; want owner/repository@<40 digits> # version, or %s", f, m[1], ours)
			}
		}
		if strings.HasSuffix(f, "action.yml") {
			continue
		}
		var w struct {
			Permissions map[string]string
			Jobs        map[string]struct {
				Permissions map[string]string
				Steps       []step
			}
		}
		if err := yaml.Unmarshal([]byte(text), &w); err != nil {
			t.Fatal(err)
		}
		if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
			t.Errorf("%s: permissions %v at the top, want contents: read", f, w.Permissions)
		}
		for name, j := range w.Jobs {
			for _, s := range j.Steps {
				if strings.HasPrefix(s.Uses, "actions/checkout@") && asText(s.With["persist-credentials"]) != "false" {
					t.Errorf("%s: %s: checkout leaves its token in the tree", f, name)
				}
				if j.Permissions["contents"] == "write" && (strings.Contains(s.Run, "go ") || strings.HasPrefix(s.Uses, "actions/checkout@")) {
					t.Errorf("%s: %s may write and runs code of the tree", f, name)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no action is used")
	}
}

// TestShellcheck: scripts that actionlint does not see.
func TestShellcheck(t *testing.T) {
	t.Parallel()
	scripts := map[string]string{}
	for _, s := range load[action](t, "ci/github/action.yml").Runs.Steps {
		if s.Run != "" {
			scripts["action, "+s.Name] = "#!/bin/bash\n" + s.Run
		}
	}
	for name, text := range jenkins(t).scripts {
		// Arguments are words of their own.
		scripts["Jenkinsfile, "+name] = strings.Replace(text, "\n", "\n# shellcheck disable=SC2086\n", 1)
	}
	for _, name := range []string{".invar-probe", ".invar-verify", ".invar-image", ".invar-lint"} {
		j := gitlab(t, name)
		scripts["gitlab, "+name] = "#!/bin/sh\n# shellcheck disable=SC2086\n:\n" + strings.Join(append(j.before, "# shellcheck disable=SC2086\n"+strings.Join(j.script, "\n")), "\n")
	}
	for id, words := range hooks(t) {
		scripts["pre-commit, "+id] = "#!/bin/sh\n# shellcheck disable=SC2086\n" + "{ " + words[2] + "; }\n"
	}
	if len(scripts) < 12 {
		t.Errorf("%d scripts, want 12 and more", len(scripts))
	}
	for name, text := range scripts {
		file := filepath.Join(t.TempDir(), "script.sh")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if code, out := execute(t, root, map[string]string{"PATH": os.Getenv("PATH")}, "shellcheck", file); code != 0 {
			t.Errorf("%s:\n%s", name, out)
		}
	}
	if bytes.ContainsRune([]byte(read(t, filepath.Join(root, "ci/Jenkinsfile"))), '\t') {
		t.Error("ci/Jenkinsfile has tabs")
	}
}
