package data

import (
	"strings"
	"testing"
)

type sample struct {
	Name  string `yaml:"name"`
	Count int    `yaml:"count"`
	Inner struct {
		List []string `yaml:"list"`
	} `yaml:"inner"`
}

func TestDecodeIsStrict(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"good", "name: a\ncount: 2\ninner:\n  list: [x]\n", ""},
		{"unknown key", "name: a\nnmae: b\n", "f.yaml:2:1:"},
		{"unknown key inside", "inner:\n  lits: [x]\n", "f.yaml:2:3:"},
		{"duplicate key", "name: a\nname: b\n", "f.yaml:2:1:"},
		{"wrong type", "name: a\ncount: many\n", "f.yaml:2:8:"},
		{"list for a string", "name: [a]\n", "f.yaml:1:"},
		{"trailing document", "name: a\n---\nname: b\n", "second document"},
		{"empty", "", "empty"},
		{"broken syntax", "name: 'a\n", "f.yaml:1:"},
		{"a tag on nothing, on which the library panics", "inner:\n  list: !00 ", "f.yaml: not YAML"},
		{"wrong-case key", "Name: a\n", "f.yaml:1:1:"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var s sample
			err := Decode("f.yaml", []byte(tc.in), &s)
			switch {
			case tc.want == "" && err != nil:
				t.Fatalf("got %v, want none", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Fatalf("got %v, want it to hold %q", err, tc.want)
			}
		})
	}
}
