package target

import (
	"errors"
	"fmt"
	"strings"
)

// CUDA says how the GPU part of a target is made: one machine code for each
// kernel source and architecture, one fatbin for each source, one library for
// the host that holds them, and one library of the wheel that calls it.
type CUDA struct {
	From     string         `yaml:"from" json:"from"`         // folder below targets/
	Library  string         `yaml:"library" json:"library"`   // file in lib/ of the run package
	Contract string         `yaml:"contract" json:"contract"` // numerical contract of the kernels
	Minimum  string         `yaml:"minimum" json:"minimum"`   // oldest compute capability they are written for
	Include  []string       `yaml:"include" json:"include"`   // folders below From that sources include from
	Headers  []string       `yaml:"headers" json:"headers"`   // shipped in include/ of the run package
	Sources  []KernelSource `yaml:"sources" json:"sources"`
	Flags    []string       `yaml:"flags" json:"flags"` // of nvcc
	Embed    string         `yaml:"embed" json:"embed"` // assembler source that puts a fatbin into an object
	Host     HostCode       `yaml:"host" json:"host"`
	Stage2   Stage2         `yaml:"stage2" json:"stage2"`       // second library of the wheel
	JobBytes int64          `yaml:"job_bytes" json:"job_bytes"` // memory of one compile, at most
}

// A KernelSource is one .cu file.
type KernelSource struct {
	Name   string   `yaml:"name" json:"name"`     // of its fatbin
	Source string   `yaml:"source" json:"source"` // relative to From
	Flags  []string `yaml:"flags" json:"flags"`
}

// HostCode is what the C++ compiler makes of the library.
type HostCode struct {
	Sources []string `yaml:"sources" json:"sources"` // relative to From
	Flags   []string `yaml:"flags" json:"flags"`
	Link    []string `yaml:"link" json:"link"`
}

func (c *CUDA) check() error {
	if c == nil {
		return nil
	}
	if c.From == "" || c.Library == "" || c.Minimum == "" || c.Embed == "" || len(c.Sources) == 0 || len(c.Host.Sources) == 0 {
		return errors.New("from, library, minimum, embed, sources and host sources are needed")
	}
	seen := map[string]bool{}
	for _, s := range c.Sources {
		if seen[s.Name] || s.Name == "" || !strings.HasSuffix(s.Source, ".cu") {
			return fmt.Errorf("source %q: a name of its own and a .cu file are needed", s.Name)
		}
		seen[s.Name] = true
	}
	if (c.Stage2.Library == "") != (len(c.Stage2.Sources) == 0) {
		return errors.New("stage2: a library and its sources belong together")
	}
	return nil
}
