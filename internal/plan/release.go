package plan

import (
	"fmt"
	"strings"

	"github.com/invar-ops/invar/internal/cannenv"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/version"
)

// A Release is where the artifacts of a target come from whose operators are
// released by a vendor: which CANN, which run package or operator sources,
// which sources of the wheel.
type Release struct {
	CANN      cannenv.Choice `json:"cann"`
	Version   string         `json:"version"` // of the operators, as asked for
	Ops       Origin         `json:"ops"`
	Extension Origin         `json:"extension"`
	SoC       string         `json:"soc"`       // SOC_VERSION of children: "ascend910b1", or the family
	Kernels   []string       `json:"kernels"`   // folders with kernels that serve the target
	Vendors   []string       `json:"vendors"`   // names of vendor folders
	Installer string         `json:"installer"` // "script" or "copy"
	Repair    bool           `json:"repair"`
	Skew      bool           `json:"allow_version_skew"`
	IntoCANN  bool           `json:"into_cann"`
	Lock      string         `json:"lock"`                  // lock file
	VLLM      string         `json:"vllm_ascend,omitempty"` // source install of vllm-ascend that goes with it
}

// An Origin is one input of a release: a file by name and content, or a tree.
type Origin struct {
	Name   string   `json:"name"`             // file name
	URLs   []string `json:"urls,omitempty"`   // and paths
	Pins   []string `json:"pins,omitempty"`   // contents that will do; empty is not known yet
	Size   int64    `json:"size,omitempty"`   // 0 is not known
	Tree   string   `json:"tree,omitempty"`   // folder; then the rest is empty
	Digest string   `json:"digest,omitempty"` // of the tree
	Ops    []string `json:"ops,omitempty"`    // operators to build from the tree; empty is its own choice
}

func (o Origin) input(name string) Input {
	switch {
	case o.Tree != "":
		return Input{name, "sha256:" + o.Digest + " " + strings.Join(o.Ops, ",")}
	case len(o.Pins) > 0:
		return Input{name, "sha256:" + strings.Join(o.Pins, " or sha256:")}
	}
	return Input{name, o.Name + " from " + strings.Join(o.URLs, " or ")}
}

// byHand is the command that brings the file without invar.
func (o Origin) byHand() []string {
	if len(o.URLs) == 0 {
		return nil
	}
	if u := o.URLs[0]; strings.Contains(u, "://") {
		return []string{"curl", "--fail", "--location", "--retry", "5", "--continue-at", "-", "--remote-name", u}
	}
	return []string{"cp", o.URLs[0], "."}
}

// cannNeed judges the CANN that was chosen.
func (r Release) cannNeed(n target.Need) report.Requirement {
	q := report.Requirement{Name: n.Name, Want: n.Want, Hint: n.Hint, Source: n.Source, Got: "none found"}
	in := r.CANN.CANN
	if !r.CANN.Found() {
		q.Hint = "install the CANN toolkit and the operator package of this SoC, or name it with --cann DIR"
		return q
	}
	v := in.Version.String()
	q.Got = fmt.Sprintf("%s %s in %s (%s)", in.Package, firstOf(v, "of unknown version"), in.Dir, r.CANN.Why)
	q.OK = v != "" && inRange(version.CANN, n.Want, v)
	switch {
	case in.Package != "toolkit":
		q.OK, q.Hint = false, "install the toolkit, not "+in.Package+" alone, or name it with --cann DIR"
	case r.CANN.SetEnv == "":
		q.OK, q.Got = false, q.Got+", without set_env.sh"
	}
	return q
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// released makes the steps of a target whose operators are released.
func (b builder) released(r Release) []Step {
	cann := Input{"CANN", strings.TrimSpace(r.CANN.CANN.Version.String() + " " + r.CANN.CANN.Dir + " " + r.CANN.Digest)}
	self := Input{"invar", b.o.Version}
	npu := Input{"torch_npu", b.f.Packages["torch-npu"]}
	ops := Step{
		ID: "stage1/fetch", Stage: Stage1, Title: r.Ops.Name, Kind: Fetch, Argv: r.Ops.byHand(),
		Inputs: []Input{r.Ops.input("run package")},
	}
	if r.Ops.Tree != "" {
		ops = Step{
			ID: "stage1/build", Stage: Stage1, Title: "operators from " + r.Ops.Tree, Kind: Run,
			Argv: r.buildOps(), Inputs: []Input{r.Ops.input("operator sources"), cann},
		}
	}
	install := Step{
		ID: "install/ops", Stage: Stage1, Title: "installed", Kind: Ops, Needs: []string{ops.ID},
		Argv:   []string{"bash", r.Ops.Name, "--quiet", "--install-path=GENERATION/ops/" + b.t.Name},
		Inputs: []Input{b.pythonInput(), cann, {"installer", fmt.Sprintf("%s, repair %v, skew %v", r.Installer, r.Repair, r.Skew)}, self},
	}
	ext := Step{
		ID: "stage2/fetch", Stage: Stage2, Title: r.Extension.Name, Kind: Fetch, Argv: r.Extension.byHand(),
		Inputs: []Input{r.Extension.input("sources of the wheel")},
	}
	wheel := Step{
		ID: "stage2/wheel", Stage: Stage2, Title: "wheel", Kind: Wheel, Needs: []string{"stage2/fetch"},
		Argv:    []string{b.p.Python.Exe, "setup.py", "bdist_wheel"},
		Outputs: []string{"dist"},
		Inputs: []Input{
			b.pythonInput(),
			{"interpreter", b.p.Python.Version},
			{"torch", b.p.Python.Torch.Version},
			npu, cann,
			{"compiler", b.f.Compiler.Banner + " " + b.f.Compiler.Identity},
			{"SOC_VERSION", r.SoC},
			self,
		},
	}
	return []Step{
		ops, install, ext, wheel,
		{
			ID: "install/site", Stage: Stage2, Title: "installed", Kind: Site,
			Needs: []string{"stage2/wheel", "install/ops"}, Inputs: []Input{b.pythonInput()},
		},
		{
			ID: "install/commit", Stage: StageInstall, Title: "switched", Kind: Commit, Needs: []string{"install/site"},
			Inputs: []Input{b.pythonInput(), {"into CANN", fmt.Sprint(r.IntoCANN)}, {"vllm-ascend", r.VLLM}},
		},
		{ID: "probe", Stage: StageProbe, Title: "probed", Kind: ProbeIt, Needs: []string{"install/commit"}},
	}
}

func (r Release) buildOps() []string {
	argv := []string{"bash", r.Ops.Tree + "/build.sh", "--pkg", "--soc=" + r.Kernels[0]}
	if len(r.Ops.Ops) > 0 {
		argv = append(argv, "--ops="+strings.Join(r.Ops.Ops, ","))
	}
	return argv
}
