package version

import (
	"errors"
	"fmt"
	"strings"
)

// A Policy says what a Range does with pre-releases. It is always named by
// the caller: no default is right for both PEP 440 and CANN.
type Policy int

// RefusePre lets no pre-release in. NamedPre lets one in where a bound of the
// range is itself a pre-release, as pip does. AllowPre goes by order alone.
const (
	RefusePre Policy = iota + 1
	NamedPre
	AllowPre
)

// A Range is a list of bounds that must all hold.
type Range struct {
	text   string
	policy Policy
	bounds []bound
}

type bound struct {
	op     string
	v      Version
	prefix bool // ==2.10.*
}

// operators are tried in this order, so that the longer spelling wins.
var operators = []string{"===", "==", "!=", "~=", ">=", "<=", ">", "<"}

// ParseRange reads bounds joined by commas: ">= 8.2.RC1, < 9". The operators
// are those of PEP 440 for every kind; a version alone means ==, "*" is any.
func ParseRange(kind Kind, text string, policy Policy) (Range, error) {
	r := Range{text: strings.TrimSpace(text), policy: policy}
	if policy < RefusePre || policy > AllowPre {
		return Range{}, fmt.Errorf("range %q without a policy for pre-releases", r.text)
	}
	if r.text == "*" {
		return r, nil
	}
	for item := range strings.SplitSeq(r.text, ",") {
		b, err := parseBound(kind, strings.TrimSpace(item))
		if err != nil {
			return Range{}, fmt.Errorf("range %q: %w", r.text, err)
		}
		r.bounds = append(r.bounds, b)
	}
	return r, nil
}

// Within reports whether the version got is in the range want, with NamedPre.
// Text that is no version, or no range, is in no range: unknown never passes.
func Within(kind Kind, want, got string) bool {
	r, err := ParseRange(kind, want, NamedPre)
	if err != nil {
		return false
	}
	v, err := Parse(kind, got)
	return err == nil && r.Contains(v)
}

// MustRange is ParseRange for text that is part of the program; it panics.
func MustRange(kind Kind, text string, policy Policy) Range {
	r, err := ParseRange(kind, text, policy)
	if err != nil {
		panic(err)
	}
	return r
}

func parseBound(kind Kind, s string) (bound, error) {
	b := bound{op: "=="}
	for _, op := range operators {
		if rest, ok := strings.CutPrefix(s, op); ok {
			b.op, s = op, strings.TrimSpace(rest)
			break
		}
	}
	if s == "" {
		return bound{}, errors.New("a bound without a version")
	}
	if rest, ok := strings.CutSuffix(s, ".*"); ok {
		if b.op != "==" && b.op != "!=" {
			return bound{}, fmt.Errorf("%s takes no .*", b.op)
		}
		b.prefix, s = true, rest
	}
	var err error
	if b.v, err = Parse(kind, s); err != nil {
		return bound{}, err
	}
	if b.prefix && len(b.v.chain) > 0 {
		return bound{}, errors.New(".* follows a release only")
	}
	if b.op == "~=" && len(b.v.Segments()) < 2 {
		return bound{}, errors.New("~= needs two numbers or more")
	}
	return b, nil
}

// String gives the range as it was written.
func (r Range) String() string { return r.text }

// IsZero reports whether r holds no range; the range "*" is not zero.
func (r Range) IsZero() bool { return r.policy == 0 }

// Contains reports whether v lies in the range.
func (r Range) Contains(v Version) bool { return r.Check(v) == nil }

// Check is nil when v lies in the range, and otherwise names the bound that
// keeps it out.
func (r Range) Check(v Version) error {
	if v.IsZero() {
		return errors.New("there is no version")
	}
	if r.IsZero() {
		return errors.New("there is no range")
	}
	for _, b := range r.bounds {
		if !b.holds(v) {
			return fmt.Errorf("%s is not %s %s", v, b.op, b.text())
		}
	}
	if v.IsPre() && !r.admitsPre() {
		return fmt.Errorf("%s is a pre-release, and %s takes releases only", v, r.text)
	}
	return nil
}

func (r Range) admitsPre() bool {
	if r.policy == AllowPre {
		return true
	}
	if r.policy == NamedPre {
		for _, b := range r.bounds {
			if b.v.IsPre() && b.op != "!=" {
				return true
			}
		}
	}
	return false
}

func (b bound) text() string {
	if b.prefix {
		return b.v.String() + ".*"
	}
	return b.v.String()
}

func (b bound) holds(v Version) bool {
	c := Compare(v, b.v)
	switch b.op {
	case "===":
		return strings.EqualFold(v.original, b.v.original)
	case "==":
		return b.same(v, c)
	case "!=":
		return !b.same(v, c)
	case "~=":
		return c >= 0 && samePrefix(v, b.v, len(b.v.Segments())-1)
	case ">=":
		return c >= 0
	case "<=":
		return c <= 0
	case ">": // 1.0.post1 is not "> 1.0"
		return c > 0 && (b.v.IsPost() || !v.IsPost() || !samePrefix(v, b.v, longest(v, b.v)))
	default: // 9.0.RC1 is not "< 9.0", although it sorts below
		return c < 0 && (b.v.IsPre() || !v.IsPre() || !samePrefix(v, b.v, longest(v, b.v)))
	}
}

// same is ==: a label in the bound must be the label of v, none asks for none.
func (b bound) same(v Version, c int) bool {
	if b.prefix {
		return samePrefix(v, b.v, len(b.v.Segments()))
	}
	return c == 0 && (b.v.kind == Plain || b.v.local == "" || b.v.local == v.local)
}

func longest(a, b Version) int { return max(len(a.Segments()), len(b.Segments())) }

func samePrefix(a, b Version, n int) bool {
	return a.epoch == b.epoch && a.Base(n) == b.Base(n)
}
