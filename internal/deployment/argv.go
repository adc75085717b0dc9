package deployment

import (
	"fmt"
	"maps"
	"strings"

	"mvdan.cc/sh/v3/shell"
)

// entrypoints are images whose command is arguments only, as their Dockerfiles
// say (vLLM: ENTRYPOINT ["vllm", "serve"]; vllm-ascend and SGLang have none).
var entrypoints = []struct{ image, entrypoint string }{
	{"vllm/vllm-openai", "vllm serve"},
	{"vllm-cpu-release-repo", "vllm serve"},
	{"vllm-cpu-env", "vllm serve"},
}

// container is a command as compose and Kubernetes give it.
func container(where, image string, entrypoint, command []string, env map[string]string) []Deployment {
	argv := append(append([]string{}, entrypoint...), command...)
	if len(entrypoint) == 0 {
		for _, e := range entrypoints {
			if strings.Contains(image, e.image) && (len(argv) == 0 || strings.HasPrefix(argv[0], "-") || !strings.Contains(argv[0], "vllm")) {
				argv = append(strings.Fields(e.entrypoint), argv...)
			}
		}
	}
	d := Deployment{Where: where, Argv: argv, Env: env}
	for i, w := range argv {
		if i > 0 && strings.HasSuffix(argv[i-1], "c") && strings.HasPrefix(argv[i-1], "-") && shellName(argv[0]) {
			found := Shell(where, w)
			for n := range found {
				merged := maps.Clone(env)
				maps.Copy(merged, found[n].Env)
				found[n].Env = merged
			}
			return found
		}
	}
	return []Deployment{d}
}

// fields splits a string at blanks outside quotes and fills in ${NAME:-default}
// from env. What stays open is a problem.
func fields(text string, env map[string]string) (argv []string, problem string) {
	unset := ""
	argv, err := shell.Fields(text, func(name string) string {
		v, ok := env[name]
		// The expansion itself asks for IFS, PWD and HOME.
		if !ok && (strings.Contains(text, "$"+name) || strings.Contains(text, "${"+name)) {
			unset = name
		}
		return v
	})
	if err != nil {
		return strings.Fields(text), fmt.Sprintf("not a whole command (%v): it was split at blanks", err)
	}
	if unset != "" && !strings.Contains(text, unset+":-") {
		problem = "the variable " + unset + " is not set in this file"
	}
	return argv, problem
}
