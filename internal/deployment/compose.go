package deployment

import "fmt"

// service is one of a compose file.
func service(where string, s map[string]any) []Deployment {
	env := environment(s["environment"])
	var problems []string
	list := func(v any) []string {
		switch v := v.(type) {
		case string:
			argv, problem := fields(v, env)
			if problem != "" {
				problems = append(problems, problem)
			}
			return argv
		case []any:
			out := make([]string, 0, len(v))
			for _, w := range v {
				out = append(out, fmt.Sprint(w))
			}
			return out
		}
		return nil
	}
	if s["env_file"] != nil {
		problems = append(problems, "env_file was not read: variables in it may change the answer")
	}
	image := ""
	if text, ok := s["image"].(string); ok {
		// What is not set here only leaves the tag open.
		if words, _ := fields(text, env); len(words) == 1 {
			image = words[0]
		}
	}
	found := container(where, image, givenDevice(s), list(s["entrypoint"]), list(s["command"]), env)
	for i := range found {
		found[i].Problems = append(found[i].Problems, problems...)
		found[i].OpenEnv = found[i].OpenEnv || s["env_file"] != nil
	}
	return found
}

// givenDevice is the kind of device that a service of a compose file is given.
func givenDevice(s map[string]any) string {
	if s["gpus"] != nil || s["runtime"] == "nvidia" {
		return "cuda"
	}
	if s["runtime"] == "ascend" {
		return "ascend"
	}
	files, _ := s["devices"].([]any)
	for _, f := range files {
		if d := deviceOf(known().Files, fmt.Sprint(f)); d != "" {
			return d
		}
	}
	deploy, _ := s["deploy"].(map[string]any)
	resources, _ := deploy["resources"].(map[string]any)
	reservations, _ := resources["reservations"].(map[string]any)
	devices, _ := reservations["devices"].([]any)
	for _, d := range devices {
		m, _ := d.(map[string]any)
		switch m["driver"] {
		case "nvidia", nil: // compose asks for "capabilities: [gpu]", which is NVIDIA's
			return "cuda"
		case "ascend":
			return "ascend"
		}
	}
	return ""
}
