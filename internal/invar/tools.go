package invar

import (
	"context"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/toolchain"
)

// Tools are what a build on this machine would work with.
type Tools struct {
	Compiler  *toolchain.Compiler `json:"compiler,omitempty"`
	Compilers []toolchain.Reason  `json:"compilers_not_taken,omitempty"`
	Python    *python.Python      `json:"python,omitempty"` // the one with torch that would be chosen
	Pythons   []python.Candidate  `json:"pythons_not_taken,omitempty"`
}

// Tools looks for them as Plan does.
func (s Session) Tools(ctx context.Context) Tools {
	var t Tools
	c, why := toolchain.Find(ctx, s.Env, s.Runner, s.toolCache())
	if t.Compilers = why; c.Path != "" {
		t.Compiler = &c
	}
	p, seen, err := python.Find(ctx, python.Options{Env: s.Env, Home: s.Prefix, Runner: s.Runner})
	t.Pythons = seen
	switch {
	case err != nil:
		t.Pythons = append(t.Pythons, python.Candidate{Reason: err.Error()})
	case p.HasTorch():
		t.Python = &p
	}
	return t
}
