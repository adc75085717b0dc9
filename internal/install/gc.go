package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
)

// A Collected says what GC removed, or would.
type Collected struct {
	Generations []string      `json:"generations"` // "<id>/<n>"
	Bytes       int64         `json:"bytes"`       // of these generations
	Store       store.Garbage `json:"store"`
	Left        []string      `json:"left"` // files in them that invar did not make
}

// GCOptions say what to keep.
type GCOptions struct {
	Keep   int  // generations a Python, the current one included; at least 1
	DryRun bool // only say what would go
}

// GC removes old generations and what no remaining one refers to in the store.
func (p *Prefix) GC(ctx context.Context, o GCOptions) (Collected, error) {
	c := Collected{Generations: []string{}, Left: []string{}}
	if o.Keep < 1 {
		return c, report.Usagef("keep %d generations: want at least 1, the current one", o.Keep)
	}
	release, err := p.hold(ctx)
	if err != nil {
		return c, err
	}
	defer release()
	ids, err := p.IDs()
	if err != nil {
		return c, err
	}
	var keep []string
	for _, id := range ids {
		digests, err := c.env(ctx, p.env(id), o)
		if err != nil {
			return c, err
		}
		keep = append(keep, digests...)
	}
	s, err := store.Open(p.Dir)
	if err != nil {
		return c, err
	}
	c.Store, err = s.Prune(keep, o.DryRun)
	return c, err
}

// env removes old generations of one Python and returns the digests of the
// artifacts that the others were made of.
func (c *Collected) env(ctx context.Context, e env, o GCOptions) ([]string, error) {
	var s state
	var err error
	if o.DryRun {
		s, err = e.readState()
	} else {
		s, err = e.recover()
	}
	if err != nil {
		return nil, err
	}
	cur, err := e.current()
	if err != nil {
		return nil, err
	}
	gens, err := e.generations()
	if err != nil {
		return nil, err
	}
	chain := e.chain(cur, o.Keep)
	var digests []string
	for _, n := range byNumber(gens) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		r, err := e.readReceipt(n)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && n == cur {
			return nil, err // without its receipt nobody knows what the store must keep
		}
		if slices.Contains(s.Others, n) {
			continue
		}
		if slices.Contains(chain, n) {
			digests = append(digests, r.RunPackage.SHA256, r.Wheel.SHA256)
			continue
		}
		if err := c.drop(e, n, r, o.DryRun); err != nil {
			return nil, err
		}
		s.Committed = slices.DeleteFunc(s.Committed, func(k int) bool { return k == n })
	}
	if o.DryRun {
		return digests, nil
	}
	return digests, e.writeState(s)
}

// chain lists the current generation and the ones that Rollback would go back
// to, at most keep of them. Others were rolled back: nobody returns to them.
func (e env) chain(cur, keep int) []int {
	var out []int
	for n := cur; n != 0 && len(out) < keep; {
		out = append(out, n)
		r, err := e.readReceipt(n)
		if err != nil || r.Previous >= n {
			break
		}
		n = r.Previous
	}
	return out
}

func (c *Collected) drop(e env, n int, r Receipt, dry bool) error {
	c.Generations = append(c.Generations, fmt.Sprintf("%s/%d", e.id, n))
	for _, f := range r.Files {
		c.Bytes += f.Size
	}
	if dry {
		return nil
	}
	left, err := e.removeGeneration(n)
	c.Left = append(c.Left, left...)
	return err
}
