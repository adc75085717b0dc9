package main

import (
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestJobsAsPeopleWriteThem: every spelling of make and of long options means
// the same, before and behind the target.
func TestJobsAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		args string
		jobs int
		rest string
	}{
		{"build cpu -j2", 2, "cpu"},
		{"build -j2 cpu", 2, "cpu"},
		{"build -j 2 cpu", 2, "cpu"},
		{"build cpu -j=2", 2, "cpu"},
		{"build cpu --jobs 12", 12, "cpu"},
		{"build cpu --jobs=12", 12, "cpu"},
		{"build cpu -j12 --offline", 12, "cpu"},
		{"build cpu", 0, "cpu"},
		{"build -- -j2", 0, "-j2"},
	} {
		app := newApp()
		app.Writer = t.Output()
		var jobs int
		var rest string
		for _, c := range app.Commands {
			c.Action = func(c *cli.Context) error {
				jobs, rest = c.Int("jobs"), strings.Join(c.Args().Slice(), " ")
				return nil
			}
		}
		if err := app.Run(permute(app, append([]string{"invar"}, strings.Fields(tc.args)...))); err != nil {
			t.Errorf("%s: %v", tc.args, err)
			continue
		}
		if jobs != tc.jobs || rest != tc.rest {
			t.Errorf("%s: %d jobs and %q, want %d and %q", tc.args, jobs, rest, tc.jobs, tc.rest)
		}
	}
}

// TestNoNumberOfJobs: what is no number stays an error.
func TestNoNumberOfJobs(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"build cpu -jx", "build cpu -j2x", "build cpu -x2"} {
		app := newApp()
		app.Writer, app.ErrWriter = t.Output(), t.Output()
		for _, c := range app.Commands {
			c.Action = func(*cli.Context) error { return nil }
		}
		if err := app.Run(permute(app, append([]string{"invar"}, strings.Fields(args)...))); err == nil {
			t.Errorf("%s was taken", args)
		}
	}
}
