package image

import (
	"strings"
	"testing"
)

func TestMatrix(t *testing.T) {
	t.Parallel()
	rows, err := Plan(Options{Repository: "registry.example/invar", Version: "1.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]Row{}
	for _, r := range rows {
		byName[r.Name] = r
	}
	for name, want := range map[string]struct{ base, soc, tag string }{
		"cpu-ubuntu24.04":             {"docker.io/library/ubuntu:24.04", "", ":1.0.0-cpu"},
		"ascend910b-ubuntu22.04":      {"quay.io/ascend/cann:9.1.0-910b-ubuntu22.04-py3.12", "ascend910b1", ":1.0.0"},
		"ascend910_93-openeuler24.03": {"quay.io/ascend/cann:9.1.0-a3-openeuler24.03-py3.12", "ascend910_9391", ":1.0.0-a3-openeuler"},
		"ascend950-ubuntu22.04":       {"quay.io/ascend/cann:9.1.0-950-ubuntu22.04-py3.12", "ascend950dt_9582", ":1.0.0-950dt"},
	} {
		r, ok := byName[name]
		if !ok {
			t.Errorf("%s is not planned", name)
			continue
		}
		if r.Base != want.base || r.SoC != want.soc {
			t.Errorf("%s: base %s, SoC %s; want %s, %s", name, r.Base, r.SoC, want.base, want.soc)
		}
		if !strings.Contains(strings.Join(r.Tags, " ")+" ", want.tag+" ") {
			t.Errorf("%s: tags %v, want one ending in %s", name, r.Tags, want.tag)
		}
	}
}
