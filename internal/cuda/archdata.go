package cuda

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/invar-ops/invar/internal/version"
)

// archRules is data/arches.yaml.
type archRules struct {
	Sources []struct {
		Fact string `yaml:"fact"`
		From string `yaml:"from"`
	} `yaml:"sources"`
	Names []struct {
		Name string `yaml:"name"`
		List string `yaml:"list"`
	} `yaml:"names"`
	Suffixes []suffixRule `yaml:"suffixes"`
	Products []struct {
		Arch  string `yaml:"arch"`
		Names string `yaml:"names"`
	} `yaml:"products"`
}

// A suffixRule says from where on a suffix exists.
type suffixRule struct {
	Suffix  string `yaml:"suffix"`
	From    string `yaml:"from"`    // compute capability
	Toolkit string `yaml:"toolkit"` // version
	Means   string `yaml:"means"`
}

var loadArches = sync.OnceValues(func() (*archRules, error) {
	var r archRules
	return &r, decode("arches.yaml", &r)
})

// named is the list that a name stands for; +PTX behind the name asks for the
// text form of its last architecture.
func (r *archRules) named(word string) (string, bool) {
	bare, ptx := word, ""
	if n := len(word) - len("+PTX"); n > 0 && strings.EqualFold(word[n:], "+PTX") {
		bare, ptx = word[:n], "+PTX"
	}
	for _, n := range r.Names {
		if strings.EqualFold(n.Name, bare) {
			if ptx != "" {
				return strings.TrimSuffix(n.List, ptx) + ptx, true
			}
			return n.List, true
		}
	}
	return "", false
}

// Choices is the list that people choose from, one a line: "9.0   H100, H200".
// Architectures that the toolkit does not compile are left out.
func Choices(supported []int, minimum int) []string {
	r, err := loadArches()
	if err != nil {
		return nil
	}
	var out []string
	for _, p := range r.Products {
		a, err := ParseArch(p.Arch)
		if err != nil || a.CC < minimum || len(supported) > 0 && !slices.Contains(supported, a.CC) {
			continue
		}
		out = append(out, fmt.Sprintf("%s (%s)", p.Arch, p.Names))
	}
	return out
}

// ArchFault says why arch cannot be compiled: minimum is the oldest that the
// kernels are written for, supported what this nvcc itself lists.
func ArchFault(arch Arch, minimum int, toolkit string, supported []int, known *Known) (fault, hint string) {
	r, err := loadArches()
	if err != nil {
		return err.Error(), ""
	}
	if arch.CC < minimum {
		return fmt.Sprintf("%s is below %s, where the kernels begin (bfloat16 tensor cores)", arch.Dotted(), dotted(minimum)),
			"leave it out: --arch takes " + strings.Join(Choices(supported, minimum), ", ")
	}
	if len(supported) > 0 && !slices.Contains(supported, arch.CC) {
		return unsupported(arch, toolkit, supported, known)
	}
	if arch.Suffix == "" {
		return "", ""
	}
	for _, s := range r.Suffixes {
		if s.Suffix != arch.Suffix {
			continue
		}
		from, err := ParseArch(s.From)
		switch {
		case err != nil:
			return err.Error(), ""
		case arch.CC < from.CC:
			return fmt.Sprintf("%s: suffix %s (%s) exists from %s on", arch.Dotted(), s.Suffix, s.Means, s.From), "write " + dotted(arch.CC) + " without the suffix"
		case toolkit != "" && !version.Within(version.CUDA, ">= "+s.Toolkit, toolkit):
			return fmt.Sprintf("%s: suffix %s needs CUDA %s, this is %s", arch.Dotted(), s.Suffix, s.Toolkit, toolkit), "write " + dotted(arch.CC) + " without the suffix, or take a newer toolkit"
		}
	}
	return "", ""
}

func unsupported(arch Arch, toolkit string, supported []int, known *Known) (fault, hint string) {
	var list []string
	for _, s := range supported {
		list = append(list, dotted(s))
	}
	fault = fmt.Sprintf("nvcc %s does not compile %s (it lists %s)", toolkit, arch.SM(), strings.Join(list, ", "))
	with := known.ForArch(arch.CC)
	switch {
	case len(with) == 0:
		return fault + "; no known toolkit does", "choose one of " + strings.Join(list, ", ")
	case version.Within(version.CUDA, "< "+with[0], toolkit):
		return fault + ": it is too old", "take a toolkit from CUDA " + with[0] + " on, or leave " + arch.Dotted() + " out"
	}
	return fault + ": it is too new, support ended with CUDA " + with[len(with)-1], "take that toolkit, or leave " + arch.Dotted() + " out"
}
