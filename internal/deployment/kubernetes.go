package deployment

import (
	"fmt"
	"maps"
	"slices"
)

// walkContainers finds every list of containers below v, in whatever kind of
// object: Pod, Deployment, StatefulSet, Job, LeaderWorkerSet.
func walkContainers(where string, v any, out *[]Deployment) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			list, ok := v[key].([]any)
			if !ok || key != "containers" && key != "initContainers" {
				walkContainers(where, v[key], out)
				continue
			}
			for _, item := range list {
				c, ok := item.(map[string]any)
				if !ok {
					continue
				}
				*out = append(*out, podContainer(where, c)...)
			}
		}
	case []any:
		for _, item := range v {
			walkContainers(where, item, out)
		}
	}
}

// podContainer is one container of a pod.
func podContainer(where string, c map[string]any) []Deployment {
	image, _ := c["image"].(string)
	found := container(fmt.Sprintf("%s: container %v", where, c["name"]), image, requested(c), stringsOf(c["command"]), stringsOf(c["args"]), environment(c["env"]))
	var problems []string
	if c["envFrom"] != nil {
		problems = append(problems, "envFrom was not read: variables in it may change the answer")
	}
	list, _ := c["env"].([]any)
	for _, e := range list {
		v, _ := e.(map[string]any)
		from, _ := v["valueFrom"].(map[string]any)
		if from["configMapKeyRef"] != nil || from["secretKeyRef"] != nil {
			problems = append(problems, fmt.Sprintf("the value of %v lies in another object", v["name"]))
		}
	}
	for i := range found {
		found[i].Problems = append(found[i].Problems, problems...)
		found[i].OpenEnv = found[i].OpenEnv || len(problems) > 0
	}
	return found
}

// requested is the kind of device that a container asks for.
func requested(c map[string]any) string {
	resources, _ := c["resources"].(map[string]any)
	for _, key := range []string{"limits", "requests"} {
		amounts, _ := resources[key].(map[string]any)
		for name := range amounts {
			if d := deviceOf(known().Resources, name); d != "" {
				return d
			}
		}
	}
	return ""
}
