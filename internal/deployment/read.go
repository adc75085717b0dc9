package deployment

import (
	"bytes"
	"path"
	"regexp"
	"strings"
)

// Read reads text in whatever form it has. The name helps where it can:
// .yaml, .service, .py; else the content decides.
func Read(name string, b []byte) ([]Deployment, error) {
	text := string(b)
	switch ext := path.Ext(name); {
	case ext == ".service" || unitFile.MatchString(text):
		return Systemd(name, text)
	case ext == ".yaml" || ext == ".yml" || manifest.Match(b):
		return YAML(name, b)
	case ext == ".json" || bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")):
		return YAML(name, b) // JSON is YAML
	}
	return Shell(name, text), nil
}

// IsPython reports whether a file is Python, which PythonFile reads.
func IsPython(name string, b []byte) bool {
	first, _, _ := strings.Cut(string(b), "\n")
	return path.Ext(name) == ".py" || strings.HasPrefix(first, "#!") && strings.Contains(first, "python")
}

var (
	unitFile = regexp.MustCompile(`(?m)^\[Service\]\s*$`)
	manifest = regexp.MustCompile(`(?m)^(services|apiVersion):`)
)
