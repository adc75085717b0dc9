package main

import (
	"bytes"
	"errors"
	"regexp"
	"testing"
)

var took = regexp.MustCompile(`\d+ ms`)

// TestGroups: each stage is one fold, notes before and after are outside, and
// nothing of it shows where GitHub does not read.
func TestGroups(t *testing.T) {
	for _, tc := range []struct{ env, want string }{
		{"true", "target cpu\n::group::stage 1\nstage 1: a ok in 0 ms\nstage 1: b ok in 0 ms\n::endgroup::\n" +
			"::group::stage 2\nnote\nstage 2: c failed in 0 ms\n::error title=invar stage 2::c 100%25 gone\n::endgroup::\nafter\n"},
		{"", "target cpu\nstage 1: a ok in 0 ms\nstage 1: b ok in 0 ms\nnote\nstage 2: c failed in 0 ms\nafter\n"},
	} {
		t.Setenv("GITHUB_ACTIONS", tc.env)
		var out bytes.Buffer
		p := newProgress(&out, false)
		end := grouped(p)
		p.Note("target cpu")
		p.Start("stage 1", "a", 0).Done("")
		p.Start("stage 1", "b", 0).Done("")
		s := p.Start("stage 2", "c", 0)
		p.Note("note")
		s.Fail(errors.New("100% gone\nand more"))
		end()
		p.Note("after")
		if got := took.ReplaceAllString(out.String(), "0 ms"); got != tc.want {
			t.Errorf("GITHUB_ACTIONS=%q: got\n%s\nwant\n%s", tc.env, got, tc.want)
		}
	}
}
