// Package version reads, orders and ranges over the version numbers of this
// field: Python packages (PEP 440), CANN, device drivers, CUDA, and everything
// else that starts with dotted digits. hashicorp/go-version holds and compares
// the dotted digits; its pre-release order and its constraints are not used,
// because both are wrong for these schemes (RC10 before RC2, 8.3.RC1 outside
// ">= 8.2-rc.1", post-releases equal to the release).
package version

import (
	"strconv"
	"strings"

	goversion "github.com/hashicorp/go-version"
)

// A Kind is a scheme of version numbers.
type Kind int

// The kinds differ in what may follow the digits: PEP440 takes epochs, pre-,
// post- and dev-releases and a local label; CANN and Driver take a dot before
// letters, test and alpha builds and a build number (B150); CUDA takes digits,
// "cu128" and the integers of the C API (12080); Plain takes any rest and
// gives it no meaning (kernels, compilers, "3.14t").
const (
	PEP440 Kind = iota + 1
	CANN
	Driver
	CUDA
	Plain
)

func (k Kind) String() string {
	return [...]string{"unknown", "PEP 440", "CANN", "driver", "CUDA", "plain"}[max(0, min(int(k), 5))]
}

// A Version is one parsed version. The zero value is no version.
type Version struct {
	kind     Kind
	original string
	epoch    int64
	core     *goversion.Version // the release segments and nothing else
	chain    []part             // what follows the release, in the order written
	local    string             // after "+", lower case; what follows the digits for Plain
	build    string             // "b150" of CANN and drivers; never compared
}

// A part is one element after the release: rc1 is {rankRC, 1}.
type part struct {
	rank rank
	n    int64
}

type rank int

// The order is the whole point: everything before rankEnd sorts below the
// release without that part, everything after it above.
const (
	rankDev rank = iota // .dev3, and T63 of CANN (test builds)
	rankA
	rankB
	rankRC
	rankEnd  // nothing more follows
	rankNum  // 8.1.RC1.1, 24.1.rc3.6: an update of what stands before it
	rankPost // .post1, SPC001
)

// Kind says by which scheme v was read.
func (v Version) Kind() Kind { return v.kind }

// IsZero reports whether v is no version at all.
func (v Version) IsZero() bool { return v.core == nil }

// String gives the text that was parsed, without surrounding blanks and quotes.
func (v Version) String() string { return v.original }

// MarshalText gives the text that was parsed.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.original), nil }

// Segments are the numbers of the release as written: 8.5.0.2.220 has five.
func (v Version) Segments() []int64 {
	if v.core == nil {
		return nil
	}
	// go-version pads to three; the padding is cut again by what was written.
	all := v.core.Segments64()
	return all[:strings.Count(v.core.Original(), ".")+1]
}

// Release is the dotted release: 0.11.0 of 0.11.0rc1.dev356+ge98543267.
func (v Version) Release() string {
	if v.core == nil {
		return ""
	}
	return dotted(v.Segments())
}

// Base is the release cut or padded to n numbers: 8.5.0.2.220 to "8.5.0".
func (v Version) Base(n int) string {
	s := v.Segments()
	for len(s) < n {
		s = append(s, 0)
	}
	return dotted(s[:n])
}

// Major is the first number of the release.
func (v Version) Major() int64 { return v.segment(0) }

// Minor is the second number of the release, 0 when there is none.
func (v Version) Minor() int64 { return v.segment(1) }

func (v Version) segment(i int) int64 {
	s := v.Segments()
	if i >= len(s) {
		return 0
	}
	return s[i]
}

// Build is the build number of a CANN component or a driver ("b150"), or "".
func (v Version) Build() string { return v.build }

// IsPre reports whether v precedes a release: dev, alpha, beta, candidate, or
// one of CANN's test builds.
func (v Version) IsPre() bool {
	for _, p := range v.chain {
		if p.rank < rankEnd {
			return true
		}
	}
	return false
}

// IsPost reports whether v is an update of a release without new digits.
func (v Version) IsPost() bool { return !v.IsPre() && len(v.chain) > 0 }

func dotted(s []int64) string {
	out := make([]string, len(s))
	for i, n := range s {
		out[i] = strconv.FormatInt(n, 10)
	}
	return strings.Join(out, ".")
}
