package deployment

import "strings"

// dockerRun takes what `docker run` (podman, nerdctl) gives the container into d:
// variables and devices. For an engine's own image the command is what follows
// it, with the image's entrypoint in front, as a second deployment.
func (s *script) dockerRun(d *Deployment) []Deployment {
	entrypoint := []string(nil)
	for i := runsContainer(d.Argv); i > 0 && i < len(d.Argv); i++ {
		if _, ok := FactsOfImage(d.Argv[i]); ok && !strings.HasPrefix(d.Argv[i], "-") {
			inner := container(s.where, d.Argv[i], d.Device, entrypoint, d.Argv[i+1:], d.Env)
			for n := range inner {
				inner[n].Line, inner[n].Sourced, inner[n].OpenEnv = d.Line, d.Sourced, d.OpenEnv
				inner[n].Problems = append(inner[n].Problems, d.Problems...)
			}
			return inner
		}
		name, value, attached := strings.Cut(d.Argv[i], "=")
		if short, ok := strings.CutPrefix(d.Argv[i], "-e"); ok && short != "" {
			name, value, attached = "-e", short, true
		}
		if !attached && i+1 < len(d.Argv) {
			value = d.Argv[i+1]
		}
		switch name {
		case "-e", "--env":
			if k, v, set := strings.Cut(value, "="); set {
				d.Env[k] = v
			} else if v, ok := s.env[k]; ok {
				d.Env[k] = v
			}
		case "--env-file":
			d.OpenEnv = true
			d.Problems = append(d.Problems, "--env-file "+value+" was not read: variables in it may change the answer")
		case "--entrypoint":
			entrypoint = []string{value}
		case "--gpus":
			d.Device = "cuda"
		case "--runtime":
			d.Device = map[string]string{"nvidia": "cuda", "ascend": "ascend"}[value]
		case "--device":
			if device := deviceOf(known().Files, value); device != "" {
				d.Device = device
			}
		}
	}
	return nil
}

// runsContainer is the index of the word behind `docker run`, 0 when argv is none.
func runsContainer(argv []string) int {
	for i := 0; i+1 < len(argv); i++ {
		tool := argv[i][strings.LastIndexByte(argv[i], '/')+1:]
		if (tool == "docker" || tool == "podman" || tool == "nerdctl") && (argv[i+1] == "run" || argv[i+1] == "create") {
			return i + 2
		}
	}
	return 0
}
