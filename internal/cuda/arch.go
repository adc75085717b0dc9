// Package cuda knows CUDA toolkits and GPU architectures: how they are written,
// which toolkit compiles which, what is wrong with a toolkit before anything is
// compiled, and how one is had from compiler wheels.
package cuda

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// An Arch is one GPU architecture that kernels are compiled for.
type Arch struct {
	CC     int    `json:"cc"`               // compute capability without the dot: 90, 120
	Suffix string `json:"suffix,omitempty"` // "", "a" or "f"
	PTX    bool   `json:"ptx,omitempty"`    // also as text that a newer driver compiles
}

// SM is the name of the machine code: sm_90a.
func (a Arch) SM() string { return fmt.Sprintf("sm_%d%s", a.CC, a.Suffix) }

// Compute is the name of the text form: compute_90a.
func (a Arch) Compute() string { return fmt.Sprintf("compute_%d%s", a.CC, a.Suffix) }

// Number is what fatbinary calls it: 90a.
func (a Arch) Number() string { return strconv.Itoa(a.CC) + a.Suffix }

// Dotted is the compute capability as people write it: 9.0a.
func (a Arch) Dotted() string { return dotted(a.CC) + a.Suffix }

func (a Arch) String() string {
	if a.PTX {
		return a.Dotted() + "+PTX"
	}
	return a.Dotted()
}

func dotted(cc int) string { return fmt.Sprintf("%d.%d", cc/10, cc%10) }

// RunsOn reports whether code for a runs on a device of that compute
// capability. Machine code runs on its own and later minor versions of its
// major version; with suffix a on that chip alone; with f within the family.
// The text form runs on everything that is not older, unless it has a suffix.
func (a Arch) RunsOn(device int) bool {
	switch {
	case a.Suffix == "a":
		return device == a.CC
	case a.PTX && a.Suffix == "" && device >= a.CC:
		return true
	}
	return device/10 == a.CC/10 && device >= a.CC
}

// Unserved lists those of devices that none of arches runs on.
func Unserved(arches []Arch, devices []int) []int {
	var out []int
	for _, d := range devices {
		if !slices.ContainsFunc(arches, func(a Arch) bool { return a.RunsOn(d) }) {
			out = append(out, d)
		}
	}
	return out
}

// OnlyByPTX lists those of devices that run the text form of some of arches and
// none of their machine code: the driver has to compile it for them.
func OnlyByPTX(arches []Arch, devices []int) []int {
	var code []Arch
	for _, a := range arches {
		a.PTX = false
		code = append(code, a)
	}
	never := Unserved(arches, devices)
	return slices.DeleteFunc(Unserved(code, devices), func(d int) bool { return slices.Contains(never, d) })
}

var archRE = regexp.MustCompile(`(?i)^(?:(sm_|compute_)?(\d{2,3})|(\d{1,2})\.(\d))([af])?(\+ptx)?$`)

// ParseArch reads one architecture: 9.0, 90, sm_90, compute_90 (its text form),
// with a suffix a or f and with +PTX.
func ParseArch(text string) (Arch, error) {
	m := archRE.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return Arch{}, report.Usagef("%q is no GPU architecture", text).
			WithWant("as 9.0, 9.0a, 12.0f, 8.0+PTX, sm_90 or a name such as Hopper", text)
	}
	digits := m[2]
	if digits == "" {
		digits = m[3] + m[4]
	}
	cc, err := strconv.Atoi(digits)
	if err != nil {
		return Arch{}, err
	}
	return Arch{CC: cc, Suffix: strings.ToLower(m[5]), PTX: m[6] != "" || strings.EqualFold(m[1], "compute_")}, nil
}

// ParseList reads a list as --arch and TORCH_CUDA_ARCH_LIST hold it: parted by
// spaces, commas or semicolons, with numbers and names of generations. The
// result is in order and names nothing twice.
func ParseList(text string) ([]Arch, error) {
	rules, err := loadArches()
	if err != nil {
		return nil, err
	}
	var out []Arch
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(";, \t\r\n", r) }) {
		words := []string{word}
		if list, ok := rules.named(word); ok {
			words = strings.Split(list, ";")
		}
		for _, w := range words {
			a, err := ParseArch(w)
			if err != nil {
				return nil, err
			}
			out = append(out, a)
		}
	}
	return compact(out), nil
}

// compact puts arches in order; the same one with and without PTX is one with.
func compact(arches []Arch) []Arch {
	slices.SortFunc(arches, func(a, b Arch) int { return cmp.Or(cmp.Compare(a.CC, b.CC), cmp.Compare(a.Suffix, b.Suffix)) })
	var out []Arch
	for _, a := range arches {
		if n := len(out); n > 0 && out[n-1].CC == a.CC && out[n-1].Suffix == a.Suffix {
			out[n-1].PTX = out[n-1].PTX || a.PTX
			continue
		}
		out = append(out, a)
	}
	return out
}

// Join is a list as --arch takes it.
func Join(arches []Arch) string {
	var out []string
	for _, a := range arches {
		out = append(out, a.String())
	}
	return strings.Join(out, ",")
}

// OfSoC is the architecture that detection names sm_90.
func OfSoC(soc string) (Arch, bool) {
	if !strings.HasPrefix(soc, "sm_") {
		return Arch{}, false
	}
	a, err := ParseArch(soc)
	return a, err == nil
}
