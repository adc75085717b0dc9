package doctor

import (
	"fmt"
	"slices"

	"github.com/invar-ops/invar/internal/version"
)

// A Matrix is the published list of combinations that belong together.
type Matrix struct {
	Source     string         `yaml:"source"`
	Since      []Since        `yaml:"since"`
	Oldest     string         `yaml:"oldest"` // oldest row with a batch-invariant mode
	Components []Component    `yaml:"components"`
	Targets    []TargetOldest `yaml:"targets"`
	Indexes    []Index        `yaml:"indexes"`
	CANN       []CANNPackage  `yaml:"cann"`
	CANNSource string         `yaml:"cann_source"`
	CUDATorch  CUDATorch      `yaml:"cuda_torch"`
	Rows       []Row          `yaml:"rows"` // from new to old
	Others     []Other        `yaml:"others"`
}

// Since is the row that something came with.
type Since struct {
	Row    string `yaml:"row"`
	Fact   string `yaml:"fact"`
	Source string `yaml:"source"`
}

// A Component is one column.
type Component struct {
	Name   string `yaml:"name"`
	Key    string `yaml:"key"`
	Kind   string `yaml:"kind"` // scheme of its versions
	Dist   string `yaml:"dist"` // distribution, for those that pip installs
	Needed bool   `yaml:"needed"`
	Weight int    `yaml:"weight"` // how much work a change of it is
}

// A Row is one combination; empty is "not part of it".
type Row struct {
	VllmAscend string `yaml:"vllm_ascend"`
	Vllm       string `yaml:"vllm"`
	Python     string `yaml:"python"` // a range
	CANN       string `yaml:"cann"`
	Torch      string `yaml:"torch"`
	TorchNPU   string `yaml:"torch_npu"`
	Triton     string `yaml:"triton"`
}

// TargetOldest is the oldest row that serves a target.
type TargetOldest struct {
	Target string `yaml:"target"`
	Oldest string `yaml:"oldest"`
	Source string `yaml:"source"`
}

// An Index is a package index for one distribution.
type Index struct {
	Dist   string `yaml:"dist"`
	Arch   string `yaml:"arch"`   // empty is every architecture
	Suffix string `yaml:"suffix"` // local label of the build to ask for
	URL    string `yaml:"url"`
	Source string `yaml:"source"`
}

// A CANNPackage is the token of a target in names of CANN packages and images.
type CANNPackage struct {
	Target  string `yaml:"target"`
	Package string `yaml:"package"`
	Image   string `yaml:"image"`
}

// CUDATorch says which torch_npu does not start beside a torch built for CUDA.
type CUDATorch struct {
	Aborts string `yaml:"aborts"` // range of torch_npu
	Text   string `yaml:"text"`   // what it prints
	Source string `yaml:"source"`
}

// An Other is a second reference that says something else than a row.
type Other struct {
	Row    string `yaml:"row"`
	Key    string `yaml:"key"`
	Value  string `yaml:"value"`
	Source string `yaml:"source"`
}

func (r Row) value(key string) string {
	return map[string]string{
		"vllm_ascend": r.VllmAscend, "vllm": r.Vllm, "python": r.Python, "cann": r.CANN,
		"torch": r.Torch, "torch_npu": r.TorchNPU, "triton": r.Triton,
	}[key]
}

func (c Component) kind() version.Kind {
	return map[string]version.Kind{"CANN": version.CANN, "PEP440": version.PEP440}[c.Kind]
}

func (m Matrix) check() error {
	names := map[string]bool{}
	for _, r := range m.Rows {
		if names[r.VllmAscend] {
			return fmt.Errorf("row %s twice", r.VllmAscend)
		}
		names[r.VllmAscend] = true
		for _, c := range m.Components {
			v := r.value(c.Key)
			if v == "" && c.Needed {
				return fmt.Errorf("row %s without %s", r.VllmAscend, c.Name)
			}
			if v == "" || v == "main" {
				continue
			}
			var err error
			if c.Key == "python" {
				_, err = version.ParseRange(version.PEP440, v, version.RefusePre)
			} else {
				_, err = version.Parse(c.kind(), v)
			}
			if err != nil {
				return fmt.Errorf("row %s, %s: %w", r.VllmAscend, c.Name, err)
			}
		}
	}
	refs := []string{m.Oldest}
	for _, o := range m.Others {
		refs = append(refs, o.Row)
	}
	for _, t := range m.Targets {
		refs = append(refs, t.Oldest)
	}
	for _, s := range m.Since {
		refs = append(refs, s.Row)
	}
	for _, ref := range refs {
		if !names[ref] {
			return fmt.Errorf("no row %q", ref)
		}
	}
	return nil
}

// Usable are the rows with a batch-invariant mode for target, new to old.
func (m Matrix) Usable(target string) []Row {
	oldest := m.Oldest
	for _, t := range m.Targets {
		if t.Target == target {
			oldest = t.Oldest
		}
	}
	i := slices.IndexFunc(m.Rows, func(r Row) bool { return r.VllmAscend == oldest })
	return m.Rows[:i+1]
}

// others are what second references say about one cell.
func (m Matrix) others(row, key string) []Other {
	var out []Other
	for _, o := range m.Others {
		if o.Row == row && o.Key == key {
			out = append(out, o)
		}
	}
	return out
}
