package main

import (
	"testing"

	"github.com/urfave/cli/v2"
)

func TestAgain(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args       []string
		hint, want string
	}{
		{[]string{"build"}, "install it again: invar build", "install it again: invar build"},
		{[]string{"build", "cpu", "--prefix", "/a b", "--python", "py"}, "invar build --jobs 1", "invar build cpu --prefix '/a b' --python py --jobs 1"},
		{[]string{"build", "--torch", "torch==2.10.0", "--offline", "cpu"}, "invar build --jobs 1", "invar build cpu --torch torch==2.10.0 --offline --jobs 1"},
		{[]string{"build", "cpu", "--prefix", "/p"}, "free some space: invar gc; or: invar build --prefix DIR", "free some space: invar gc --prefix /p; or: invar build cpu --prefix DIR"},
		{[]string{"status", "--prefix", "/p", "--python", "x"}, "invar build cpu --python /y", "invar build cpu --prefix /p --python /y"},
		{[]string{"probe", "--prefix", "/p", "cuda"}, "invar build cpu (again), invar rollback", "invar build cpu --prefix /p (again), invar rollback --prefix /p"},
		{[]string{"gc", "--prefix", "/p"}, "name the target: invar build TARGET", "name the target: invar build TARGET --prefix /p"},
		{[]string{"build", "cpu", "--prefix", "/p"}, "g++ --version; invarbuild", "g++ --version; invarbuild"},
	} {
		app := newApp()
		app.Writer = t.Output()
		var got string
		for _, c := range app.Commands {
			c.Action = func(c *cli.Context) error { got = again(c, tc.hint); return nil }
		}
		if err := app.Run(permute(app, append([]string{"invar"}, tc.args...))); err != nil {
			t.Fatal(err)
		}
		if got != tc.want {
			t.Errorf("%v: %q became %q, want %q", tc.args, tc.hint, got, tc.want)
		}
	}
}
