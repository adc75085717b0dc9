package chip

import "slices"

type isaFile struct {
	Levels []struct {
		Level string   `yaml:"level"`
		Arch  []string `yaml:"arch"`
		Needs []string `yaml:"needs"`
	} `yaml:"levels"`
	Wider []string `yaml:"wider"`
}

func (*isaFile) compile() error { return nil }

// Levels are the ISA levels, lowest first, whose features are all in flags.
func (r *Rules) Levels(arch string, flags []string) []string {
	var out []string
	for _, l := range r.isa.Levels {
		if slices.Contains(l.Arch, arch) && !slices.ContainsFunc(l.Needs, func(n string) bool { return !slices.Contains(flags, n) }) {
			out = append(out, l.Level)
		}
	}
	return out
}

// ISAFlags are those of flags that a level needs or that are wider than all levels.
func (r *Rules) ISAFlags(flags []string) []string {
	want := slices.Clone(r.isa.Wider)
	for _, l := range r.isa.Levels {
		want = append(want, l.Needs...)
	}
	var out []string
	for _, f := range flags {
		if slices.Contains(want, f) {
			out = append(out, f)
		}
	}
	return out
}
