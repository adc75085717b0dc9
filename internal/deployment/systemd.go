package deployment

import (
	"fmt"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"
)

// Systemd reads a service unit: every ExecStart= with the unit's Environment=.
func Systemd(where, text string) ([]Deployment, error) {
	options, err := unit.DeserializeOptions(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	env := map[string]string{}
	var problems []string
	open := false
	for _, o := range options {
		switch o.Name {
		case "Environment":
			list, problem := fields(o.Value, env)
			if problem != "" {
				problems = append(problems, problem)
			}
			for _, e := range list {
				if name, value, ok := strings.Cut(e, "="); ok {
					env[name] = value
				}
			}
		case "EnvironmentFile":
			problems = append(problems, "EnvironmentFile "+o.Value+" was not read: variables in it may change the answer")
			open = true
		}
	}
	var out []Deployment
	for _, o := range options {
		if o.Name != "ExecStart" || o.Value == "" {
			continue
		}
		// Prefixes of systemd.service(5): they change how, not what is started.
		argv, problem := fields(strings.TrimLeft(o.Value, "-@:+!"), env)
		out = append(out, container(where, "", "", argv, nil, env)...)
		if problem != "" && len(out) > 0 {
			out[len(out)-1].Problems = append(out[len(out)-1].Problems, problem)
		}
	}
	for i := range out {
		out[i].Problems = append(out[i].Problems, problems...)
		out[i].OpenEnv = out[i].OpenEnv || open
	}
	return out, nil
}
