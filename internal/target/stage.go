package target

import "slices"

// Stage1 says what the run package is made from.
type Stage1 struct {
	From    string   `yaml:"from" json:"from"`       // folder below targets/, or "package" for a released one
	Package string   `yaml:"package" json:"package"` // name of the run package without version
	Library string   `yaml:"library" json:"library"` // file in lib/ of the run package
	Objects []Object `yaml:"objects" json:"objects"` // one compile each
	Flags   []string `yaml:"flags" json:"flags"`     // of every compile
	Link    []string `yaml:"link" json:"link"`       // flags of the link
	Headers []string `yaml:"headers" json:"headers"` // shipped in include/
}

// An Object is one compile of one source.
type Object struct {
	Name   string   `yaml:"name" json:"name"`     // file name without .o
	Source string   `yaml:"source" json:"source"` // relative to From
	Level  string   `yaml:"level" json:"level"`   // ISA level; empty for code that every level shares
	Arches []string `yaml:"arches" json:"arches"` // where it is compiled; empty means everywhere
	Flags  []string `yaml:"flags" json:"flags"`
}

// For lists the objects that are compiled on arch.
func (s Stage1) For(arch string) []Object {
	var out []Object
	for _, o := range s.Objects {
		if len(o.Arches) == 0 || slices.Contains(o.Arches, arch) {
			out = append(out, o)
		}
	}
	return out
}

// Levels lists the ISA levels that a package for arch holds, lowest first.
func (s Stage1) Levels(arch string) []string {
	var out []string
	for _, o := range s.For(arch) {
		if o.Level != "" && !slices.Contains(out, o.Level) {
			out = append(out, o.Level)
		}
	}
	return out
}

// Stage2 says what the wheel is made from.
type Stage2 struct {
	From    string   `yaml:"from" json:"from"`       // folder below targets/
	Package string   `yaml:"package" json:"package"` // import name
	Library string   `yaml:"library" json:"library"` // file beside __init__.py
	Sources []string `yaml:"sources" json:"sources"` // relative to From; one compile each
	Flags   []string `yaml:"flags" json:"flags"`
	Link    []string `yaml:"link" json:"link"`
	Headers []string `yaml:"headers" json:"headers"` // folders below targets/ that the sources include
}
