package bench

import (
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/run"
)

// script is what a person would write who knows the compiler commands: per
// stage, compile side by side, link, copy into place. $1 is an empty folder.
func script(p plan.Plan, sources string) string {
	var s strings.Builder
	fmt.Fprintf(&s, "set -eu\ncd \"$1\"\nln -s %s src\nmkdir -p build/cuda stage1/cuda stage2/cuda ops/lib ops/include site/batch_invariant_ops\n", run.Quote(sources))
	for _, stage := range []string{plan.Stage1, plan.Stage2} {
		var compiles, links []string
		for _, st := range p.Steps {
			if st.Stage != stage || st.Kind != plan.Run {
				continue
			}
			line := "env -i PATH=\"$PATH\" " + strings.Join(st.Env, " ") + " " + run.Cmd{Argv: st.Argv}.String()
			if len(st.Needs) > 0 {
				links = append(links, line)
			} else {
				compiles = append(compiles, line)
			}
		}
		fmt.Fprintf(&s, "xargs -P %s -d '\\n' -n 1 sh -c <<'COMPILES'\n%s\nCOMPILES\n", jobs, strings.Join(compiles, "\n"))
		s.WriteString(strings.Join(links, "\n") + "\n")
		for _, st := range p.Steps {
			if st.Stage == stage {
				copies(&s, st)
			}
		}
	}
	return s.String()
}

// copies puts the files of a package into place without making the package.
func copies(s *strings.Builder, st plan.Step) {
	root := map[plan.Kind]string{plan.Pack: "ops", plan.Wheel: "site"}[st.Kind]
	if root == "" {
		return
	}
	raw, _ := json.Marshal(st.Spec)
	var spec struct {
		Files []struct{ From, To string } `json:"files"`
	}
	_ = json.Unmarshal(raw, &spec)
	for _, f := range spec.Files {
		to := filepath.Join(root, f.To)
		fmt.Fprintf(s, "mkdir -p %s\ncp %s %s\n", path.Dir(to), run.Quote(f.From), run.Quote(to))
	}
}
