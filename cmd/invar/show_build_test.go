package main

import (
	"testing"

	"github.com/invar-ops/invar/internal/install"
)

// TestUndoIsACommandThatWorks: a first generation has nothing to go back to,
// and a prefix that is not the usual one has to be named.
func TestUndoIsACommandThatWorks(t *testing.T) {
	t.Parallel()
	hook := install.Moved{Generation: 1, Kind: "hook"}
	taken := install.Moved{Generation: 1, Kind: "hook", Was: "/other/env/ab/current/site\n"}
	for _, c := range []struct {
		name    string
		r       install.Receipt
		env     []string
		several bool
		want    string
	}{
		{"first", install.Receipt{Prefix: "/p", Replaced: []install.Moved{hook}}, []string{"INVAR_HOME=/p"}, false, "invar uninstall"},
		{"second", install.Receipt{Prefix: "/p", Previous: 1}, []string{"INVAR_HOME=/p"}, false, "invar rollback"},
		{"first, taken over", install.Receipt{Prefix: "/p", Replaced: []install.Moved{taken}}, []string{"INVAR_HOME=/p"}, false, "invar rollback"},
		{"other prefix", install.Receipt{Prefix: "/a b", Previous: 1}, []string{"INVAR_HOME=/p"}, false, "invar rollback --prefix '/a b'"},
		{"one of two Pythons", install.Receipt{Prefix: "/p", Python: install.Env{Exe: "/v/bin/python"}}, []string{"INVAR_HOME=/p"}, true, "invar uninstall --python /v/bin/python"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := undo(c.r, c.env, c.several); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
