package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
)

// A RolledBack says what Rollback did.
type RolledBack struct {
	From     int      `json:"from"`
	To       int      `json:"to"`                 // 0: nothing of invar's is installed any more
	Receipt  *Receipt `json:"receipt,omitempty"`  // of To
	Restored []Moved  `json:"restored,omitempty"` // brought back to site-packages
	Pip      string   `json:"pip,omitempty"`      // command that takes back what pip did with From
}

// Rollback makes the generation before the current one current again, and
// brings back what the current one had moved aside. When there is none before
// but something was moved aside or taken over, that comes back instead.
func (p *Prefix) Rollback(ctx context.Context, id string) (RolledBack, error) {
	return p.goBack(ctx, id, func(b RolledBack) error {
		if b.To != 0 || len(b.Restored) > 0 {
			return nil
		}
		return report.Problemf(report.Failed, "generation %d is the first one", b.From).
			WithWant("an earlier generation", "none").
			WithHint("invar uninstall removes it")
	})
}

// GoesBack reports whether Rollback has something to go back to from r: an
// earlier generation, or what r moved aside or took over.
func (r Receipt) GoesBack() bool {
	return r.Previous != 0 || len(state{Moved: r.Replaced}.later(0)) > 0
}

// TakeBack undoes the installation that r describes, for a build whose probe
// failed: what was current before it is current again, be it nothing.
func (p *Prefix) TakeBack(ctx context.Context, r Receipt) (RolledBack, error) {
	return p.goBack(ctx, r.Python.ID, func(b RolledBack) error {
		if b.From == r.Generation {
			return nil
		}
		return report.Problemf(report.Failed, "generation %d is not the current one any more", r.Generation).
			WithWant(fmt.Sprint(r.Generation), fmt.Sprint(b.From)).
			WithHint("invar status says what is installed")
	})
}

// goBack switches to the previous generation when allowed agrees.
func (p *Prefix) goBack(ctx context.Context, id string, allowed func(RolledBack) error) (RolledBack, error) {
	release, err := p.hold(ctx)
	if err != nil {
		return RolledBack{}, err
	}
	defer release()
	e := p.env(id)
	s, err := e.recover()
	if err != nil {
		return RolledBack{}, err
	}
	cur, err := e.current()
	if err != nil {
		return RolledBack{}, err
	}
	if cur == 0 {
		return RolledBack{}, p.noSuch(id)
	}
	r, err := e.readReceipt(cur)
	if err != nil {
		return RolledBack{}, err
	}
	back := RolledBack{From: cur, To: r.Previous, Restored: s.later(r.Previous)}
	if r.Release != nil && r.Release.VLLM != nil {
		back.Pip = r.Release.VLLM.Back
	}
	if err := allowed(back); err != nil {
		return RolledBack{}, err
	}
	if err := back.check(ctx, e); err != nil {
		return RolledBack{}, err
	}
	if err := e.setCurrent(back.To); err != nil { // the commit
		return RolledBack{}, store.Explain(err, "prefix "+p.Dir)
	}
	if err := e.settle(&s, back.To); err != nil {
		return back, err
	}
	return back, back.hook(e)
}

// hook writes the hook again where somebody removed it: without it the
// generation that is current again would be on no path.
func (b RolledBack) hook(e env) error {
	if b.Receipt == nil {
		return nil
	}
	path := b.Receipt.Hook.Path
	if _, state, _, err := e.readHook(path); err != nil || state != HookMissing {
		return err
	}
	return e.carryOut(Moved{Kind: "hook", From: path, Now: b.Receipt.Hook.Content})
}

// later lists the changes outside the prefix that belong to generations after n.
func (s state) later(n int) []Moved {
	var out []Moved
	for _, m := range s.Moved {
		if m.Generation > n && (m.Kind == "aside" || m.Kind == "hook" && m.Was != "" && !m.own()) {
			out = append(out, m)
		}
	}
	return out
}

// own reports whether a hook only changed between the forms of one environment.
func (m Moved) own() bool {
	was, _, _ := strings.Cut(m.Was, "\n")
	now, _, _ := strings.Cut(m.Now, "\n")
	return m.Kind == "hook" && was == now
}

// check makes sure that there is something whole to go back to.
func (b *RolledBack) check(ctx context.Context, e env) error {
	if b.To == 0 {
		return nil
	}
	gens, err := e.generations()
	if err != nil {
		return err
	}
	if !slices.Contains(gens, b.To) {
		return report.Problemf(report.Failed, "generation %d was removed", b.To).
			WithWant(fmt.Sprintf("generation %d on disk", b.To), fmt.Sprint(gens)).
			WithHint("invar gc removed it; build it again")
	}
	r, err := e.readReceipt(b.To)
	if err != nil {
		return err
	}
	var h Health
	if err := h.files(ctx, e, r, false); err != nil {
		return err
	}
	if len(h.Faults) > 0 {
		return report.Problemf(report.CheckFailed, "generation %d is not whole", b.To).
			WithWant(h.Faults[0].Want, h.Faults[0].Path+": "+h.Faults[0].Got).
			WithHint("build it again; generation %d stays current", b.From)
	}
	b.Receipt = &r
	return nil
}
