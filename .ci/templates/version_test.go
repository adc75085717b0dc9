package templates

import (
	"path/filepath"
	"regexp"
	"testing"
)

// TestVersions: a release's templates install that release.
func TestVersions(t *testing.T) {
	t.Parallel()
	v := version(t)
	if got := asText(load[action](t, "ci/github/action.yml").Inputs["version"].Default); got != v {
		t.Errorf("the action installs %s, this is %s", got, v)
	}
	on := load[workflow](t, ".github/workflows/images.yml").On.(map[string]any)
	inputs := on["workflow_call"].(map[string]any)["inputs"].(map[string]any)
	if got := asText(inputs["version"].(map[string]any)["default"]); got != v {
		t.Errorf("the workflow of images installs %s, this is %s", got, v)
	}
	named := regexp.MustCompile(`invar-ops/invar\S*[@/]v(\d+\.\d+\.\d+)`)
	for _, f := range []string{"docs/ci.md", "ci/gitlab.yml", ".github/workflows/images.yml"} {
		all := named.FindAllStringSubmatch(read(t, filepath.Join(root, f)), -1)
		for _, m := range all {
			if m[1] != v {
				t.Errorf("%s names %s, this is %s", f, m[0], v)
			}
		}
		if len(all) == 0 {
			t.Errorf("%s names no release: the test looks for the wrong text", f)
		}
	}
}
