package version

import (
	"strings"
	"testing"
)

func TestRangeByPolicy(t *testing.T) {
	t.Parallel()
	// The columns are where go-version's own constraints go wrong.
	columns := []string{"8.2.RC1", "8.2.RC2", "8.3.RC1", "8.2.0", "8.5.0", "9.1.0"}
	tests := []struct {
		text   string
		policy Policy
		want   string // one letter a column
	}{
		{">= 8.0.0", RefusePre, "nnnyyy"},
		{">= 8.0.0", AllowPre, "yyyyyy"},
		{">= 8.2.RC1", RefusePre, "nnnyyy"},
		{">= 8.2.RC1", NamedPre, "yyyyyy"},
		{">= 8.2.RC1, < 9.0.0", NamedPre, "yyyyyn"},
		{">= 8.2.RC2, < 9", AllowPre, "nyyyyn"},
		{"~= 8.2", AllowPre, "nnyyyn"},
		{"!= 8.2.0", AllowPre, "yyynyy"},
		{"== 8.2.*", AllowPre, "yynynn"},
		{"8.2.RC2", NamedPre, "nynnnn"},
		{"< 8.2", AllowPre, "nnnnnn"},
		{"< 8.3", AllowPre, "yynynn"},
		{"*", RefusePre, "nnnyyy"},
		{"*", AllowPre, "yyyyyy"},
	}
	for _, tt := range tests {
		r := MustRange(CANN, tt.text, tt.policy)
		var got strings.Builder
		for _, c := range columns {
			if r.Contains(MustParse(CANN, c)) {
				got.WriteByte('y')
			} else {
				got.WriteByte('n')
			}
		}
		if got.String() != tt.want {
			t.Errorf("%q (policy %d) over %v = %s, want %s", tt.text, tt.policy, columns, got.String(), tt.want)
		}
	}
}

func TestRangePEP440(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text, v string
		want    bool
	}{
		{">= 2.9, < 2.11", "2.10.0+cpu", true},
		{">= 2.9, < 2.11", "2.10.0rc1", false},
		{">=3.10,<3.13", "3.12.9", true},
		{">=3.10,<3.13", "3.13.0", false},
		{"==2.9.0+cpu", "2.9.0", false},
		{"==2.9.0+cpu", "2.9.0+cu128", false},
		{"==2.9.0+cpu", "2.9.0+cpu", true},
		{"==2.9.0", "2.9.0+cpu", true},
		{"==2.9.0", "2.9.0.post1", false},
		{"==2.9.*", "2.9.1.post1", true},
		{"!=2.9.*", "2.9.1", false},
		{"> 2.9", "2.9.0.post1", false},
		{"> 2.9", "2.9.1", true},
		{"~=2.9.1", "2.9.5", true},
		{"~=2.9.1", "2.10", false},
		{"===2.9.0+cpu", "2.9.0+cpu", true},
		{"===2.9", "2.9.0", false},
		{"==1!2.0", "2.0", false},
	}
	for _, tt := range tests {
		if got := MustRange(PEP440, tt.text, RefusePre).Contains(MustParse(PEP440, tt.v)); got != tt.want {
			t.Errorf("%s in %q = %t, want %t", tt.v, tt.text, got, tt.want)
		}
	}
}

func TestRangeSaysWhy(t *testing.T) {
	t.Parallel()
	r := MustRange(CANN, ">= 8.2, < 9", RefusePre)
	for v, want := range map[string]string{
		"8.1.0": "8.1.0 is not >= 8.2", "9.1.0": "9.1.0 is not < 9", "8.5.0-beta.1": "is a pre-release",
	} {
		if err := r.Check(MustParse(CANN, v)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%s) = %v, want %q in it", v, err, want)
		}
	}
	if r.Check(Version{}) == nil || (Range{}).Check(MustParse(CANN, "1")) == nil {
		t.Error("no version, or no range, must not count as contained")
	}
}

func TestParseRangeRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", ">=", ">= main", "~= 8", ">= 8.*", "8.0 || 9.0", "== 8.2.RC1.*", ">= 8,", "=> 8"} {
		if r, err := ParseRange(CANN, text, AllowPre); err == nil {
			t.Errorf("ParseRange(%q) = %q, want an error", text, r)
		}
	}
	if _, err := ParseRange(CANN, ">= 8", 0); err == nil {
		t.Error("a range without a policy must be refused")
	}
}
