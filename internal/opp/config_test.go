package opp

import (
	"slices"
	"strings"
	"testing"
)

func TestParseConfig(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		names []string
		doubt string
	}{
		{"load_priority=A\n", []string{"A"}, ""},
		{"load_priority=B,A", []string{"B", "A"}, ""},
		{"load_priority=A,\n", []string{"A", ""}, ""},
		{"# x\nload_priority=A\nload_priority=B\n", []string{"A"}, "first"},
		{"load_priority = A\n", nil, "no blanks"},
		{"load_priority=A\r\n", []string{"A\r"}, "carriage return"},
		{"load_priority=B, A\n", []string{"B", " A"}, "blanks around"},
		{" load_priority=A\n", nil, "no blanks"},
		{"", nil, "no line"},
		{"load_priority=\n", []string{""}, ""},
	} {
		got := ParseConfig(c.text)
		if !slices.Equal(got.Names, c.names) || !strings.Contains(strings.Join(got.Doubts, "; "), c.doubt) || (c.doubt == "") != (len(got.Doubts) == 0) {
			t.Errorf("%q: %q with doubts %q, want %q with %q", c.text, got.Names, got.Doubts, c.names, c.doubt)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add("load_priority=A,B\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, n := range ParseConfig(text).Names {
			if strings.ContainsAny(n, "\n,") {
				t.Errorf("name %q", n)
			}
		}
	})
}
