package plan

import (
	"slices"
	"testing"
)

func TestClosure(t *testing.T) {
	t.Parallel()
	f := Facts{
		Sources: map[string]string{"k/a.cpp": "1", "k/a.h": "1", "k/sub/b.h": "1", "lib/c.h": "1", "k/c.h": "1", "k/odd.cpp": "1", "k/loop.h": "1"},
		Includes: map[string][]string{
			"k/a.cpp":   {"a.h", "vector", "sub/b.h"},
			"k/a.h":     {"loop.h"},
			"k/loop.h":  {"a.h"},
			"k/sub/b.h": {"../c.h", "c.h"}, // beside it there is none: the folders in their order
			"k/c.h":     nil,
			"lib/c.h":   nil,
			"k/odd.cpp": {"a.h", ""},
		},
	}
	for _, tc := range []struct {
		source  string
		folders []string
		want    []string // nil: cannot be told
	}{
		{"k/a.cpp", []string{"k", "lib"}, []string{"k/a.cpp", "k/a.h", "k/c.h", "k/loop.h", "k/sub/b.h"}},
		{"k/a.cpp", []string{"lib"}, []string{"k/a.cpp", "k/a.h", "k/c.h", "k/loop.h", "k/sub/b.h", "lib/c.h"}},
		{"k/odd.cpp", []string{"k"}, nil},
		{"k/unread.cpp", []string{"k"}, nil},
	} {
		got, ok := f.closure(tc.source, tc.folders)
		if ok != (tc.want != nil) || !slices.Equal(got, tc.want) {
			t.Errorf("%s in %v: got %v, %v; want %v", tc.source, tc.folders, got, ok, tc.want)
		}
	}
}
