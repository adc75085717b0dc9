package wheel

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/elffile"
)

// A Reason is one thing that bounds the platform of a wheel from below.
type Reason struct {
	File   string `json:"file"`
	Needs  string `json:"needs"`  // "libc.so.6 GLIBC_2.34", "libfoo.so.1"
	Policy string `json:"policy"` // "manylinux_2_34", "linux" when no policy allows it
}

// A Platform is the platform tag that a set of ELF files earns, and why.
type Platform struct {
	Tag     string   `json:"tag"`     // "manylinux_2_28_x86_64"; "any" without ELF files
	Reasons []Reason `json:"reasons"` // what decided: every need of the deciding policy
}

// PlatformOf finds the oldest platform tag that files may carry. Libraries
// named in provided come from elsewhere (torch's, already in the process) and
// bound nothing. Files of several architectures in one wheel are an error.
func PlatformOf(files []*elffile.File, provided ...string) (Platform, error) {
	if len(files) == 0 {
		return Platform{Tag: "any"}, nil
	}
	pol, err := loadPolicy()
	if err != nil {
		return Platform{}, err
	}
	arch, musl := files[0].Arch, files[0].Musl()
	b := bound{policy: pol, arch: arch, own: map[string]bool{}, provided: provided}
	for _, f := range files {
		if f.Arch != arch {
			return Platform{}, fmt.Errorf("one wheel cannot hold %s (%s) and %s (%s)", files[0].Path, arch, f.Path, f.Arch)
		}
		if f.Musl() != musl {
			return Platform{}, fmt.Errorf("one wheel cannot hold %s and %s: one is linked with glibc, the other with musl", files[0].Path, f.Path)
		}
		b.own[path.Base(f.Path)], b.own[f.Soname] = true, true
	}
	if musl {
		return b.musl(files), nil
	}
	if pol.Symbols[arch] == nil {
		return Platform{"linux_" + arch, []Reason{{files[0].Path, "architecture " + arch, "linux"}}}, nil
	}
	b.level = pol.Policies.Manylinux[0]
	if arch != "x86_64" {
		b.level = 17 // PEP 599: the first policy for anything but x86
	}
	for _, f := range files {
		b.file(f)
	}
	return b.result(), nil
}

// linux is above every policy: no manylinux tag fits.
const linux = 1 << 20

// bound raises level to the lowest policy that allows all it has seen.
type bound struct {
	policy   policy
	arch     string
	own      map[string]bool // libraries inside the wheel
	provided []string
	level    int
	reasons  []Reason
}

func (b *bound) need(level int, f *elffile.File, what string) {
	if level < b.level {
		return
	}
	if level > b.level {
		b.level, b.reasons = level, nil
	}
	b.reasons = append(b.reasons, Reason{f.Path, what, policyName(level)})
}

func policyName(level int) string {
	if level == linux {
		return "linux"
	}
	return fmt.Sprintf("manylinux_2_%d", level)
}

func (b *bound) foreign(lib string) bool {
	return b.own[lib] || slices.Contains(b.provided, lib) || strings.HasPrefix(lib, "ld-linux")
}

func (b *bound) file(f *elffile.File) {
	for _, lib := range f.Needed {
		if b.foreign(lib) {
			continue
		}
		level, ok := b.policy.Libraries[lib]
		if !ok {
			level = linux
		}
		b.need(level, f, lib)
		b.blocked(f, lib)
	}
	for _, v := range f.Wants {
		if !slices.Contains(b.provided, v.Library) && !b.own[v.Library] {
			b.need(b.version(v.Name), f, v.Library+" "+v.Name)
		}
	}
}

// version finds the policy of a symbol version. A prefix that no policy knows
// bounds nothing, as in auditwheel: its library does.
func (b *bound) version(name string) int {
	prefix, number, _ := strings.Cut(name, "_")
	known, ok := b.policy.Symbols[b.arch][prefix]
	if !ok {
		return 0
	}
	if level, ok := known[number]; ok {
		return level
	}
	return linux
}

// blocked looks for symbols that a listed library exports on some hosts only.
func (b *bound) blocked(f *elffile.File, lib string) {
	for _, s := range f.Imports {
		last, ok := b.policy.Blocked[lib][s.Name]
		if !ok {
			continue
		}
		level := linux
		if i := slices.Index(b.policy.Policies.Manylinux, last); i >= 0 && i+1 < len(b.policy.Policies.Manylinux) {
			level = b.policy.Policies.Manylinux[i+1]
		}
		b.need(level, f, lib+" "+s.Name)
	}
}

func (b *bound) result() Platform {
	return Platform{policyName(b.level) + "_" + b.arch, b.reasons}
}

func (b *bound) musl(files []*elffile.File) Platform {
	p := Platform{Tag: "musllinux_" + b.policy.Policies.Musllinux + "_" + b.arch}
	for _, f := range files {
		for _, lib := range f.Needed {
			// Only musl itself is on every musl host; libstdc++ and libgcc are not.
			if b.foreign(lib) || strings.HasPrefix(lib, "libc.musl-") || lib == "libc.so" {
				continue
			}
			p.Tag = "linux_" + b.arch
			p.Reasons = append(p.Reasons, Reason{f.Path, lib, "linux"})
		}
	}
	return p
}
