package version

import (
	"cmp"
	"fmt"
	"strings"
)

// Compare orders a and b: -1, 0 or 1. The local label (+cpu, +cu128) and the
// build number (B150) are facts of their own and take no part: 2.10.0+cpu and
// 2.10.0 are equal here. A zero Version sorts below all others.
func Compare(a, b Version) int {
	if a.core == nil || b.core == nil {
		return cmp.Compare(known(a), known(b))
	}
	if c := cmp.Compare(a.epoch, b.epoch); c != 0 {
		return c
	}
	if c := a.core.Compare(b.core); c != 0 {
		return c
	}
	return compareChain(a.chain, b.chain)
}

// Less reports whether a sorts before b.
func Less(a, b Version) bool { return Compare(a, b) < 0 }

// Equal reports whether a and b are the same version by Compare.
func Equal(a, b Version) bool { return Compare(a, b) == 0 }

func known(v Version) int {
	if v.core == nil {
		return 0
	}
	return 1
}

func compareChain(a, b []part) int {
	for i := range max(len(a), len(b)) {
		x, y := at(a, i), at(b, i)
		if c := cmp.Compare(x.rank, y.rank); c != 0 {
			return c
		}
		if c := cmp.Compare(x.n, y.n); c != 0 {
			return c
		}
	}
	return 0
}

func at(c []part, i int) part {
	if i < len(c) {
		return c[i]
	}
	return part{rank: rankEnd}
}

// Canonical spells v in one way: 2.7.0RC01 and v2.7rc1 both give 2.7rc1. It
// parses back, with the same kind, to an equal version.
func (v Version) Canonical() string {
	if v.core == nil {
		return ""
	}
	var b strings.Builder
	if v.epoch != 0 {
		fmt.Fprintf(&b, "%d!", v.epoch)
	}
	b.WriteString(dotted(trimRelease(v.Segments())))
	for _, p := range v.chain {
		b.WriteString(v.spell(p))
	}
	if v.build != "" {
		b.WriteString("." + v.build)
	}
	if v.local != "" {
		b.WriteString("+" + v.local)
	}
	return b.String()
}

func (v Version) spell(p part) string {
	format := map[rank]string{
		rankDev: ".dev%d", rankA: "a%d", rankB: "b%d", rankRC: "rc%d", rankNum: ".%d", rankPost: ".post%d",
	}
	if v.kind == CANN || v.kind == Driver {
		format[rankA], format[rankB], format[rankRC] = ".alpha%d", ".beta%d", ".rc%d"
		format[rankNum] = "-%d" // a dot would join the digits of the release
	}
	return fmt.Sprintf(format[p.rank], p.n)
}

// trimRelease drops zeros at the end, down to two numbers.
func trimRelease(s []int64) []int64 {
	for len(s) > 2 && s[len(s)-1] == 0 {
		s = s[:len(s)-1]
	}
	return s
}
