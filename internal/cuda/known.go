package cuda

import (
	"embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/invar-ops/invar/internal/data"
	"github.com/invar-ops/invar/internal/version"
)

//go:embed all:data
var files embed.FS

// Load is the embedded data about toolkits, decoded and checked once. It is
// shared: do not change it.
func Load() (*Known, error) { return loadOnce() }

var loadOnce = sync.OnceValues(func() (*Known, error) {
	var k Known
	if err := decode("toolkits.yaml", &k); err != nil {
		return nil, err
	}
	return &k, k.Check()
})

func decode(name string, into any) error {
	b, err := files.ReadFile("data/" + name)
	if err != nil {
		return err
	}
	return data.Decode("internal/cuda/data/"+name, b, into)
}

// Known is what is known about CUDA toolkits and the wheels of torch.
type Known struct {
	Sources []struct {
		Fact string `yaml:"fact"`
		From string `yaml:"from"`
	} `yaml:"sources"`
	Toolkits []ToolkitFacts `yaml:"toolkits"` // from old to new
	Wheels   []TorchWheel   `yaml:"wheels"`
	Compiler []CompilerWay  `yaml:"compiler"` // from new to old
}

// ToolkitFacts is one toolkit: what it adds and drops against the one before.
type ToolkitFacts struct {
	Version string `yaml:"version"`
	Add     []int  `yaml:"add"`
	Drop    []int  `yaml:"drop"`
	Driver  string `yaml:"driver"`
	GCC     string `yaml:"gcc"`
	Clang   string `yaml:"clang"`

	Arches []int `yaml:"-"` // sums of the above
	Exact  bool  `yaml:"-"` // the toolkit asked for is listed itself
}

// A TorchWheel is one build of torch on its own index.
type TorchWheel struct {
	Torch  string `yaml:"torch"`
	CUDA   string `yaml:"cuda"`
	Arches []int  `yaml:"arches"`
	Source string `yaml:"source"`
}

// A CompilerWay is how nvcc is had from a CUDA version on.
type CompilerWay struct {
	From    string `yaml:"from"`
	Command string `yaml:"command"`
	Source  string `yaml:"source"`
}

// Check finds what a decoder cannot: versions out of order, ranges that do not parse.
func (c Known) Check() error {
	last := version.Version{}
	for _, t := range c.Toolkits {
		v, err := version.Parse(version.CUDA, t.Version)
		if err != nil {
			return err
		}
		if !version.Less(last, v) {
			return fmt.Errorf("toolkit %s is not newer than the one before", t.Version)
		}
		last = v
		if _, err := version.ParseRange(version.Driver, t.Driver, version.RefusePre); err != nil {
			return err
		}
		for _, r := range []string{t.GCC, t.Clang} {
			if r == "" {
				continue
			}
			if _, err := version.ParseRange(version.Plain, r, version.RefusePre); err != nil {
				return err
			}
		}
	}
	return nil
}

// Toolkit is what is known about version v: the newest listed one that is not
// newer than v, with the architectures added up.
func (c Known) Toolkit(v string) (ToolkitFacts, bool) {
	got, err := version.Parse(version.CUDA, v)
	if err != nil {
		return ToolkitFacts{}, false
	}
	var best ToolkitFacts
	var arches []int
	for _, t := range c.Toolkits {
		at := version.MustParse(version.CUDA, t.Version)
		if version.Less(version.MustParse(version.CUDA, got.Base(2)), at) {
			break
		}
		arches = append(slices.DeleteFunc(arches, func(a int) bool { return slices.Contains(t.Drop, a) }), t.Add...)
		best, best.Exact = t, at.Base(2) == got.Base(2)
	}
	best.Arches = slices.Sorted(slices.Values(arches))
	return best, best.Version != ""
}

// ForArch lists the toolkits that compile for the architecture.
func (c Known) ForArch(arch int) []string {
	var out []string
	for _, t := range c.Toolkits {
		if f, ok := c.Toolkit(t.Version); ok && slices.Contains(f.Arches, arch) {
			out = append(out, t.Version)
		}
	}
	return out
}

// WheelsOf are the builds of torch's release.
func (c Known) WheelsOf(torch string) []TorchWheel {
	v, err := version.Parse(version.PEP440, torch)
	if err != nil {
		return nil
	}
	var out []TorchWheel
	for _, w := range c.Wheels {
		if w.Torch == v.Base(2) {
			out = append(out, w)
		}
	}
	return out
}

// CompilerHint is how a compiler for CUDA minor ("13.2") is had.
func (c Known) CompilerHint(minor string) string {
	got, err := version.Parse(version.CUDA, minor)
	if err != nil {
		return ""
	}
	for _, w := range c.Compiler {
		if !version.Less(got, version.MustParse(version.CUDA, w.From)) {
			return strings.NewReplacer("{minor}", got.Base(2), "{dash}", strings.ReplaceAll(got.Base(2), ".", "-")).Replace(w.Command)
		}
	}
	return ""
}
