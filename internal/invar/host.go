package invar

import (
	"context"

	"github.com/invar-ops/invar/internal/host"
)

// An answer is what this host said of itself. One verb asks once: each look at
// a machine with cards starts its vendor's tools, which take a driver lock.
type answer struct {
	facts *host.Facts
}

// asking gives s a place for the answer, for the verb that begins.
func (s Session) asking() Session {
	if s.host == nil {
		s.host = &answer{}
	}
	return s
}

// detect asks the host, or gives what it said before in this verb, as if soc
// had been named.
func (s Session) detect(ctx context.Context, soc string) (host.Facts, error) {
	s = s.asking()
	if s.host.facts == nil {
		f, err := host.Detect(ctx, host.Options{Root: "/", Runner: s.Runner, Env: s.Env})
		if err != nil {
			return f, err
		}
		s.host.facts = &f
	}
	return s.host.facts.With(soc), nil
}
