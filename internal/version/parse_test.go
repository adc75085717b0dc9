package version

import (
	"errors"
	"testing"
)

func TestParseReadsEachScheme(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind      Kind
		text      string
		release   string
		canonical string
		pre       bool
	}{
		{CANN, "8.2.RC1", "8.2", "8.2.rc1", true},
		{CANN, "8.2.RC1.alpha003", "8.2", "8.2.rc1.alpha3", true},
		{CANN, "8.1.RC1.1", "8.1", "8.1.rc1-1", true},
		{CANN, "8.5.0-beta.1", "8.5.0", "8.5.beta1", true},
		{CANN, "8.5.0.alpha001", "8.5.0", "8.5.alpha1", true},
		{CANN, "8.0.T63", "8.0", "8.0.dev63", true},
		{CANN, "7.6.T13.0.B094", "7.6", "7.6.dev13.b094", true},
		{CANN, "8.5.0.2.220", "8.5.0.2.220", "8.5.0.2.220", false},
		{CANN, "9.1.0.B150", "9.1.0", "9.1.b150", false},
		{CANN, "CANN-1.83", "1.83", "1.83", false},
		{CANN, "cann-9.1.0", "9.1.0", "9.1", false},
		{Driver, "25.2.RC1", "25.2", "25.2.rc1", true},
		{Driver, "24.1.rc3.6", "24.1", "24.1.rc3-6", true},
		{Driver, "7.7.0.1.231", "7.7.0.1.231", "7.7.0.1.231", false},
		{Driver, "570.148.08", "570.148.8", "570.148.8", false},
		{PEP440, "2.10.0+cpu", "2.10.0", "2.10+cpu", false},
		{PEP440, "2.10.0a0+gitabc", "2.10.0", "2.10a0+gitabc", true},
		{PEP440, "0.11.0rc1.dev0", "0.11.0", "0.11rc1.dev0", true},
		{PEP440, "0.23.0.post1", "0.23.0", "0.23.post1", false},
		{PEP440, "2.7.1.dev20250724", "2.7.1", "2.7.1.dev20250724", true},
		{PEP440, "1!2.0", "2.0", "1!2.0", false},
		{PEP440, "v0.19.1rc2.dev123+gabc", "0.19.1", "0.19.1rc2.dev123+gabc", true},
		{PEP440, "1.0-1", "1.0", "1.0.post1", false},
		{PEP440, "8.2.RC1", "8.2", "8.2rc1", true},
		{PEP440, " 9.1.0\n", "9.1.0", "9.1", false},
		{CUDA, "12.8", "12.8", "12.8", false},
		{CUDA, "V12.4.131", "12.4.131", "12.4.131", false},
		{CUDA, "cu128", "12.8", "12.8", false},
		{CUDA, "cu92", "9.2", "9.2", false},
		{CUDA, "cu13", "13", "13", false},
		{CUDA, "12080", "12.8", "12.8", false},
		{CUDA, "13000", "13.0", "13.0", false},
		{Plain, "5.15.0-1053-aws", "5.15.0", "5.15+1053-aws", false},
		{Plain, "3.14t", "3.14", "3.14+t", false},
		{Plain, "12.2.0-14+deb12u1", "12.2.0", "12.2+14+deb12u1", false},
		{Driver, `"25.3.rc1"`, "25.3", "25.3.rc1", true},
	}
	for _, tt := range tests {
		v, err := Parse(tt.kind, tt.text)
		if err != nil {
			t.Errorf("Parse(%s, %q): %v", tt.kind, tt.text, err)
			continue
		}
		if v.Release() != tt.release || v.Canonical() != tt.canonical || v.IsPre() != tt.pre {
			t.Errorf("Parse(%s, %q) = release %s, %s, pre %t; want %s, %s, %t",
				tt.kind, tt.text, v.Release(), v.Canonical(), v.IsPre(), tt.release, tt.canonical, tt.pre)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind Kind
		text string
	}{
		{CANN, "main"},
		{CANN, "8.2.hotfix1"},
		{CANN, "8..2"},
		{CANN, "8.2."},
		{PEP440, "2.10.x"},
		{PEP440, "1.0+"},
		{PEP440, "1.0 2.0"},
		{PEP440, "1.0\x00"},
		{CUDA, "12.8rc1"},
		{CUDA, "release 12.4"},
		{Plain, "gcc"},
		{PEP440, "99999999999999999999.1"},
		{PEP440, "1.0rc99999999999999999999"},
		{Kind(0), "1.0"},
		{Kind(9), "1.0"},
	} {
		v, err := Parse(tt.kind, tt.text)
		if err == nil {
			t.Errorf("Parse(%s, %q) = %s, want an error", tt.kind, tt.text, v.Canonical())
		} else if errors.Is(err, ErrUnknown) {
			t.Errorf("Parse(%s, %q) is malformed, not unknown: %v", tt.kind, tt.text, err)
		}
	}
}

func TestPlaceholdersAreUnknown(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", " \t", "N/A", "[N/A]", "NA", "XXX.XX", "[Not Supported]", "Unknown", "[Unknown Error]", "None",
		`Deprecated, see "KMD version" instead`,
	} {
		if _, err := Parse(Driver, text); !errors.Is(err, ErrUnknown) {
			t.Errorf("Parse(driver, %q) error = %v, want ErrUnknown", text, err)
		}
	}
}

func TestLocalLabels(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text, flavour, commit, ngc string
		untagged                   bool
	}{
		{"0.11.1rc6.dev0+g2918c1b49.d20251127.empty", "empty", "2918c1b49", "", false},
		{"0.8.4+empty", "empty", "", "", false},
		{"0.1.dev1+gbdb2cdd", "", "bdb2cdd", "", true},
		{"0.1.dev16463+gfb1ac806c", "", "fb1ac806c", "", true},
		{"0.1.0.dev3", "", "", "", false},
		{"0.17.0rc1.dev168+gdc6b57846.d20260309.cu131", "cu131", "dc6b57846", "", false},
		{"2.9.0.post1+git4c901a4", "", "4c901a4", "", false},
		{"2.9.0a0+145a3a7bda.nv25.10", "", "", "25.10", false},
		{"2.10.0+CPU", "cpu", "", "", false},
	}
	for _, tt := range tests {
		v := MustParse(PEP440, tt.text)
		if v.Flavour() != tt.flavour || v.Commit() != tt.commit || v.NGC() != tt.ngc || v.Untagged() != tt.untagged {
			t.Errorf("%s: flavour %q, commit %q, NGC %q, untagged %t; want %q, %q, %q, %t", tt.text,
				v.Flavour(), v.Commit(), v.NGC(), v.Untagged(), tt.flavour, tt.commit, tt.ngc, tt.untagged)
		}
	}
}
