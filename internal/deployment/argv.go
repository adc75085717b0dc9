package deployment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/shell"
)

// container is a command as compose, Kubernetes and docker run give it. An
// engine's own image whose command is arguments only starts its entrypoint.
func container(where, image, device string, entrypoint, command []string, env map[string]string) []Deployment {
	argv := append(append([]string{}, entrypoint...), command...)
	if len(entrypoint) == 0 && (len(argv) == 0 || !strings.Contains(argv[0], "vllm")) {
		argv = append(slices.Clone(entrypointOf(image)), argv...)
	}
	found := inShell(where, argv, env)
	if found == nil {
		found = []Deployment{{Where: where, Argv: argv, Env: env}}
	}
	for i := range found {
		found[i].Image, found[i].Device = image, device
	}
	return found
}

// inShell reads the script of sh -c (or -lc, -ec) in argv, with env below what it
// sets itself; nil when there is none.
func inShell(where string, argv []string, env map[string]string) []Deployment {
	for i := 1; i < len(argv); i++ {
		option := strings.HasPrefix(argv[i-1], "-") && strings.HasSuffix(argv[i-1], "c")
		if !option || !shellName(argv[0]) && (i < 2 || !shellName(argv[i-2])) {
			continue
		}
		found := Shell(where, argv[i])
		for n := range found {
			merged := maps.Clone(env)
			maps.Copy(merged, found[n].Env)
			found[n].Env = merged
		}
		return found
	}
	return nil
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
