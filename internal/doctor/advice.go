package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/version"
)

// commands are the steps to the row: one for CANN, one for everything that
// pip installs, one for the interpreter.
func (j *judge) commands(a Advice) []string {
	var out, pip []string
	for _, c := range a.Changes {
		switch {
		case c.component.Key == "cann":
			out = append(out, j.cannStep(c.To))
		case c.component.Key == "python":
			out = append(out, fmt.Sprintf("use a Python %s: invar doctor %s --python PY   (uv python install %s)", c.To, j.t.Name, pick(c.To)))
		case c.component.Dist != "":
			pip = append(pip, c.component.Key)
		}
	}
	if len(pip) > 0 {
		if slices.Contains(pip, "torch_npu") && !slices.Contains(pip, "torch") {
			pip = append(pip, "torch") // pip would else move torch as it likes
		}
		out = append(out, j.pipCommand(a, pip)...)
	}
	return out
}

// cannStep uses a tree that is already here.
func (j *judge) cannStep(want string) string {
	w, err := version.Parse(version.CANN, want)
	for _, in := range j.f.CANN {
		if err == nil && in.Package == "toolkit" && version.Equal(in.Version, w) && in.SetEnv != "" {
			return "source " + in.SetEnv + "   (CANN " + want + " is installed in " + in.Dir + ")"
		}
	}
	return j.cannCommand(want)
}

// pick is the newest minor version that a range such as >=3.10,<3.13 takes.
func pick(want string) string {
	for minor := 20; minor >= 8; minor-- {
		v := fmt.Sprintf("3.%d", minor)
		if version.Within(version.PEP440, want, v) {
			return v
		}
	}
	return want
}

// pipCommand installs the columns of the row together, from the indexes that
// have them.
func (j *judge) pipCommand(a Advice, keys []string) []string {
	var specs, urls []string
	for _, c := range j.d.Matrix.Components {
		v := a.row.value(c.Key)
		if c.Dist == "" || v == "" || v == "main" || !slices.Contains(keys, c.Key) {
			continue
		}
		// A local label names one build of the vendor; pip finds the release by itself.
		public, _, _ := strings.Cut(v, "+")
		suffix := ""
		for _, i := range j.d.Matrix.Indexes {
			if i.Dist != c.Dist || (i.Arch != "" && i.Arch != j.f.Arch) {
				continue
			}
			suffix = i.Suffix
			if !slices.Contains(urls, i.URL) {
				urls = append(urls, i.URL)
			}
		}
		specs = append(specs, c.Dist+"=="+public+suffix)
	}
	if len(specs) == 0 {
		return nil
	}
	var cmd strings.Builder
	cmd.WriteString(j.f.Python.installer() + " " + strings.Join(specs, " "))
	for _, u := range urls {
		cmd.WriteString(" --extra-index-url " + u)
	}
	return []string{cmd.String()}
}
