// Package deployment reads how a server is started: a command line, a shell
// script, a compose file, Kubernetes manifests, a systemd unit, a running
// process or the LLM(...) call of a Python file. It starts nothing and judges
// nothing; what it could not read it says.
package deployment

import (
	"path"
	"slices"
	"strings"
)

// A Deployment is one start of a server.
type Deployment struct {
	Where    string            `json:"where"`    // "compose.yaml: service llm"
	Line     int               `json:"line"`     // in the file, 0 when unknown
	Argv     []string          `json:"argv"`     // program and arguments
	Env      map[string]string `json:"env"`      // what the text sets, not what the host has
	Sourced  []string          `json:"sourced"`  // scripts that a shell reads before, as CANN's set_env.sh
	Image    string            `json:"image"`    // of the container that it runs in, "" for none
	Device   string            `json:"device"`   // what the container is given: cuda, ascend, rocm; "" when that is not said
	OpenEnv  bool              `json:"open_env"` // more variables come from where this text does not show them
	Problems []string          `json:"problems"` // what could not be read, or would not reach the server as written
}

// engines are the ways to start a server that are recognised: how argv begins,
// path and interpreter options left out.
var engines = []struct {
	name  string
	words []string
}{
	{"vllm", []string{"vllm", "serve"}},
	{"vllm", []string{"python", "-m", "vllm.entrypoints.openai.api_server"}},
	{"vllm", []string{"python", "-m", "vllm.entrypoints.api_server"}},
	{"vllm", []string{"python", "-m", "vllm.entrypoints.cli.main", "serve"}},
	{"sglang", []string{"python", "-m", "sglang.launch_server"}},
	{"sglang", []string{"sglang", "serve"}},
	{"vllm", []string{LLM}},
}

// LLM is the program's name in the argv of an offline use: LLM(...) in Python.
const LLM = "LLM(...)"

// Engine says which engine argv starts and which arguments it gets. A program
// that starts another (nohup, env, docker run, sh -c) is looked through.
func (d Deployment) Engine() (name string, args []string) {
	argv := d.Argv
	for len(argv) > 0 {
		for _, e := range engines {
			if rest, ok := begins(argv, e.words); ok {
				return e.name, rest
			}
		}
		argv = argv[1:]
	}
	return "", nil
}

func begins(argv, words []string) ([]string, bool) {
	i := 0
	for n, w := range words {
		if n == 1 && w == "-m" { // options of the interpreter: -u, -I
			for i < len(argv) && strings.HasPrefix(argv[i], "-") && argv[i] != "-m" {
				i++
			}
		}
		if i >= len(argv) || !same(argv[i], w, n == 0) {
			return nil, false
		}
		i++
	}
	return argv[i:], true
}

// same compares a word of argv with one of a pattern; a program may have a
// path and a version (/usr/bin/python3.12).
func same(word, want string, program bool) bool {
	if !program {
		return word == want
	}
	base := path.Base(word)
	return base == want || want == "python" && strings.HasPrefix(base, "python") && strings.Trim(base[len("python"):], ".0123456789") == ""
}

// Servers keeps the deployments that start a known engine.
func Servers(all []Deployment) []Deployment {
	return slices.DeleteFunc(slices.Clone(all), func(d Deployment) bool {
		name, _ := d.Engine()
		return name == ""
	})
}
