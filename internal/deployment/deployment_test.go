package deployment

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/rootfs"
)

// TestShell: what a person pastes, and what the server would get of it.
func TestShell(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		argv []string
		env  string
	}{
		"vllm serve m --tp 2":                       {[]string{"vllm", "serve", "m", "--tp", "2"}, ""},
		"A=1 B='x y' vllm serve m &":                {[]string{"vllm", "serve", "m"}, "A=1 B=x y"},
		"export A=1\nvllm serve \\\n  m > log 2>&1": {[]string{"vllm", "serve", "m"}, "A=1"},
		"M=m\nnohup vllm serve \"$M\" &":            {[]string{"nohup", "vllm", "serve", "m"}, ""},
		"env A=1 vllm serve m":                      {[]string{"env", "A=1", "vllm", "serve", "m"}, "A=1"},
		"docker run -e A=1 --rm img vllm serve m":   {[]string{"docker", "run", "-e", "A=1", "--rm", "img", "vllm", "serve", "m"}, "A=1"},
		"bash -c 'A=1 vllm serve m'":                {[]string{"vllm", "serve", "m"}, "A=1"},
		"if true; then\n  vllm serve m\nfi":         {[]string{"vllm", "serve", "m"}, ""},
		"$ export A=1\n$ vllm serve m \\\n> --x":    {[]string{"vllm", "serve", "m", "--x"}, "A=1"},
		"user@host:~/src$ python3.12 -m vllm.entrypoints.openai.api_server --model m": {[]string{"python3.12", "-m", "vllm.entrypoints.openai.api_server", "--model", "m"}, ""},
		"vllm serve m --config '{\"a\": 1}'":                                          {[]string{"vllm", "serve", "m", "--config", `{"a": 1}`}, ""},
		"vllm serve m --name \"unfinished":                                            {[]string{"vllm", "serve", "m", "--name", "unfinished"}, ""},
	} {
		found := Servers(Shell("test", text))
		if len(found) != 1 {
			t.Errorf("%q: %d servers, want 1", text, len(found))
			continue
		}
		if !slices.Equal(found[0].Argv, want.argv) {
			t.Errorf("%q: %q, want %q", text, found[0].Argv, want.argv)
		}
		for name, value := range found[0].Env {
			if !strings.Contains(want.env, name+"="+value) {
				t.Errorf("%q: sets %s=%s", text, name, value)
			}
		}
		if want.env != "" && len(found[0].Env) == 0 {
			t.Errorf("%q: no environment, want %s", text, want.env)
		}
	}
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "ls -l", "# vllm serve m", "echo 'vllm serve m'", "{", "pip install vllm"} {
		if found := Servers(Shell("test", text)); len(found) > 0 {
			t.Errorf("%q: %+v", text, found)
		}
	}
}

func TestProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "proc", "42"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"cmdline": "/venv/bin/python3\x00-u\x00-m\x00vllm.entrypoints.openai.api_server\x00--model\x00m\x00", "environ": "A=1\x00VLLM_BATCH_INVARIANT=1\x00"} {
		if err := os.WriteFile(filepath.Join(dir, "proc", "42", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	d, err := Process(root, 42)
	if err != nil {
		t.Fatal(err)
	}
	if name, args := d.Engine(); name != "vllm" || !slices.Equal(args, []string{"--model", "m"}) || d.Env["VLLM_BATCH_INVARIANT"] != "1" {
		t.Errorf("%s %q %v", name, args, d.Env)
	}
	if _, err := Process(root, 43); err == nil {
		t.Error("a process that is not there has no error")
	}
}

func FuzzShell(f *testing.F) {
	f.Add("vllm serve m --x '{\"a\":1}' \\\n > log")
	f.Add("(v) [a@b ~]# vllm serve m\n> --x")
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range Shell("fuzz", text) {
			d.Engine()
		}
	})
}

// FuzzYAML: no file of a user makes the reader panic.
func FuzzYAML(f *testing.F) {
	f.Add("services: {a: {image: 'x:${T:-1}', command: vllm serve m, devices: [/dev/davinci0]}}")
	f.Add("apiVersion: v1\nspec: {containers: [{args: !00 ")
	f.Add("services:\n  a:\n    deploy: {resources: {reservations: {devices: [{driver: nvidia}]}}}\n---\nkind: Pod\n")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := YAML("fuzz.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, d := range found {
			d.Engine()
		}
	})
}
