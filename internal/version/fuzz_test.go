package version

import (
	"strings"
	"testing"
)

var seeds = []string{
	"8.2.RC1.alpha003", "8.1.RC1.1", "7.6.T13.0.B094", "8.5.0-beta.1", "24.1.rc3.6", "CANN-1.83", "1!2.0.post1.dev3+cu128",
	"2.10.0a0+gitabc", "v0.19.1rc2.dev123+gabc", "5.15.0-1053-aws", "12080", "cu128", "N/A", "", "1.0-1", "08.0.00", "1rc-.5",
}

func FuzzParseRoundTrips(f *testing.F) {
	for _, s := range seeds {
		for k := range int(Plain) + 1 {
			f.Add(k, s)
		}
	}
	f.Fuzz(func(t *testing.T, kind int, s string) {
		v, err := Parse(Kind(kind), s)
		if err != nil {
			return
		}
		w, err := Parse(Kind(kind), v.String())
		if err != nil || Compare(v, w) != 0 || w.String() != v.String() {
			t.Fatalf("%q: String %q parses to %q, %v", s, v.String(), w.String(), err)
		}
		c := v.Canonical()
		if len(c) > maxLen {
			return
		}
		w, err = Parse(Kind(kind), c)
		if err != nil || Compare(v, w) != 0 || w.Canonical() != c || w.Local() != v.Local() || w.Build() != v.Build() {
			t.Fatalf("%q: Canonical %q parses to %q, %v", s, c, w.Canonical(), err)
		}
		_ = v.Flavour() + v.Commit() + v.NGC() + v.Base(3)
	})
}

func FuzzCompareIsATotalOrder(f *testing.F) {
	for i := range seeds {
		f.Add(1+i%5, seeds[i], seeds[(i+1)%len(seeds)], seeds[(i+2)%len(seeds)])
	}
	f.Fuzz(func(t *testing.T, kind int, s1, s2, s3 string) {
		a, err1 := Parse(Kind(kind), s1)
		b, err2 := Parse(Kind(kind), s2)
		c, err3 := Parse(Kind(kind), s3)
		if err1 != nil || err2 != nil || err3 != nil {
			return
		}
		if Compare(a, a) != 0 || Compare(a, b) != -Compare(b, a) {
			t.Fatalf("%q and %q: not antisymmetric", s1, s2)
		}
		if Compare(a, b) <= 0 && Compare(b, c) <= 0 && Compare(a, c) > 0 {
			t.Fatalf("%q <= %q <= %q, but not the ends", s1, s2, s3)
		}
		if Compare(a, b) == 0 && Compare(a, c) != Compare(b, c) {
			t.Fatalf("%q = %q, but %q tells them apart", s1, s2, s3)
		}
	})
}

func FuzzParseRange(f *testing.F) {
	for _, s := range []string{">= 8.2.RC1, < 9", "~= 8.2", "==8.2.*", "*", "===x", "!= 1"} {
		f.Add(int(CANN), s, "8.2.0")
	}
	f.Fuzz(func(t *testing.T, kind int, text, s string) {
		r, rangeErr := ParseRange(Kind(kind), text, AllowPre)
		v, err := Parse(Kind(kind), s)
		if err != nil {
			return
		}
		if rangeErr == nil && r.Contains(v) {
			// A range without pre-releases holds no more than one with them.
			strict := MustRange(Kind(kind), text, RefusePre)
			if strict.Contains(v) == v.IsPre() {
				t.Fatalf("%q in %q, but the policy decides %t", s, text, strict.Contains(v))
			}
		}
		c := v.Canonical()
		if len(c) > maxLen || strings.ContainsAny(c, ",*") {
			return
		}
		eq, err1 := ParseRange(Kind(kind), "== "+c, AllowPre)
		ne, err2 := ParseRange(Kind(kind), "!= "+c, AllowPre)
		if err1 != nil || err2 != nil || !eq.Contains(v) || ne.Contains(v) {
			t.Fatalf("%q: == and != of itself: %v %v", s, err1, err2)
		}
	})
}
