package deployment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/invar-ops/invar/internal/data"
)

// YAML reads compose files and Kubernetes manifests, told apart by their keys.
// Other documents of the same file are passed over.
func YAML(where string, b []byte) ([]Deployment, error) {
	dec := yaml.NewDecoder(bytes.NewReader(b))
	var out []Deployment
	for n := 1; ; n++ {
		var doc map[string]any
		err := data.Next(dec, &doc)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, fmt.Errorf("%s: document %d: %w", where, n, err)
		}
		if services, ok := doc["services"].(map[string]any); ok {
			for _, name := range slices.Sorted(maps.Keys(services)) {
				if s, ok := services[name].(map[string]any); ok {
					out = append(out, service(where+": service "+name, s)...)
				}
			}
			continue
		}
		kind, _ := doc["kind"].(string)
		meta, _ := doc["metadata"].(map[string]any)
		name, _ := meta["name"].(string)
		walkContainers(strings.TrimSpace(where+": "+kind+" "+name), doc, &out)
	}
}

// environment is a map or a list of NAME=VALUE, or Kubernetes' list of objects.
func environment(v any) map[string]string {
	env := map[string]string{}
	switch v := v.(type) {
	case map[string]any:
		for k, val := range v {
			env[k] = fmt.Sprint(val)
			if val == nil {
				delete(env, k) // taken from the host
			}
		}
	case []any:
		for _, e := range v {
			switch e := e.(type) {
			case string:
				if name, value, ok := strings.Cut(e, "="); ok {
					env[name] = value
				}
			case map[string]any:
				if value, ok := e["value"]; ok {
					env[fmt.Sprint(e["name"])] = fmt.Sprint(value)
				}
			}
		}
	}
	return env
}

func stringsOf(v any) []string {
	list, _ := v.([]any)
	out := make([]string, 0, len(list))
	for _, w := range list {
		out = append(out, fmt.Sprint(w))
	}
	return out
}
