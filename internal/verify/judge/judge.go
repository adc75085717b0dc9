package judge

import (
	"fmt"
	"math"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/verify/answer"
	"github.com/invar-ops/invar/internal/verify/drive"
	"github.com/invar-ops/invar/internal/verify/journal"
	"github.com/invar-ops/invar/internal/verify/workload"
)

// Facts are what the judge knows beside the journal.
type Facts struct {
	Server    Server
	Workloads []workload.Workload
	Control   string // the server that must vary; "" where none was given
	RankURLs  int
	Strict    bool
	Routing   []string // what the workers say of their operators
	Unrouted  int      // engines of a server with invar's operators whose workers say nothing
	Plain     bool     // the control was started here and its workers say nothing of the kind
	Fresh     bool     // servers were started for this: their first requests are known
	// LogPreemptions are those that the server's log tells of; newer servers tell none.
	LogPreemptions int
	Ended          string // why it stopped early, or ""
	Because        string // the error behind it
}

// Judge compares all runs, each with each, and comes to a verdict.
func Judge(f Facts, runs []*journal.Run, rd Reader) (Result, error) {
	res := Result{Server: f.Server}
	mine := byRole(runs, journal.Subject)
	dims := map[Dimension]Count{}
	for _, w := range f.Workloads {
		rs := ofWorkload(mine, w.Name)
		if len(rs) == 0 {
			continue
		}
		view, err := workloadOf(w, rs, max(len(f.Server.Ranks), f.RankURLs), rd)
		if err != nil {
			return res, err
		}
		for _, c := range view.ByDim {
			t := dims[c.Dimension]
			dims[c.Dimension] = Count{c.Dimension, t.Pairs + c.Pairs, t.Differ + c.Differ}
		}
		res.Workloads = append(res.Workloads, view)
	}
	for _, d := range Dimensions {
		if c, ok := dims[d]; ok {
			res.ByDim = append(res.ByDim, c)
		}
	}
	var compare []*journal.Run
	for _, r := range mine {
		if compared(r) {
			compare = append(compare, r)
		}
	}
	res.Coverage = coverage(f, compare)
	res.Power = power(f, compare, total(res.Workloads).Pairs)
	if f.Control != "" {
		res.Control = control(f, byRole(runs, journal.Control), mine)
	}
	if err := sees(compare, rd); err != nil {
		return res, err
	}
	res.Verdict = verdict(f, &res, mine, compare)
	if res.Verdict.Word != Variant {
		return res, nil
	}
	var err error
	res.Suspects, err = suspects(&res)
	return res, err
}

func byRole(runs []*journal.Run, role string) []*journal.Run {
	var out []*journal.Run
	for _, r := range runs {
		if r.Role == role {
			out = append(out, r)
		}
	}
	return out
}

func ofWorkload(runs []*journal.Run, name string) []*journal.Run {
	var out []*journal.Run
	for _, r := range runs {
		if r.Workload == name && compared(r) {
			out = append(out, r)
		}
	}
	return out
}

func total(ws []Workload) (c struct{ Pairs, Differ, Unclear, Changed, Requests int }) {
	for _, w := range ws {
		c.Pairs += w.Pairs
		c.Differ += w.Differ
		c.Unclear += w.Unclear
		c.Changed += w.Changed
		c.Requests += w.Requests
	}
	return c
}

// control counts what the same comparison finds where it must find something,
// and what it found for the same requests on the server that is judged.
func control(f Facts, runs, mine []*journal.Run) *ControlResult {
	c := &ControlResult{Server: f.Control, Status: report.Fail, Plain: f.Plain && len(f.Routing) > 0}
	for _, w := range f.Workloads {
		rs := ofWorkload(runs, w.Name)
		if len(rs) == 0 {
			continue
		}
		pairs, differ := count(rs)
		c.Pairs, c.Differ = c.Pairs+pairs, c.Differ+differ
		c.Requests += w.Prompts.Count
		c.Changed += changed(rs, w.Prompts.Count)
		c.Subject += changed(ofWorkload(mine, w.Name), w.Prompts.Count)
	}
	if c.Differ > 0 {
		c.Status = report.Pass
	}
	return c
}

// changed counts the requests of n that got more than one answer.
func changed(rs []*journal.Run, n int) int {
	c := 0
	for i := range n {
		if _, _, distinct := parting(rs, i); distinct > 1 {
			c++
		}
	}
	return c
}

func count(rs []*journal.Run) (pairs, differ int) {
	for i, a := range rs {
		for _, b := range rs[i+1:] {
			p, d := meet(a, b)
			pairs, differ = pairs+p, differ+d
		}
	}
	return pairs, differ
}

// Varies reports whether the control showed a difference in a workload.
func Varies(runs []*journal.Run, name string) bool {
	_, differ := count(ofWorkload(byRole(runs, journal.Control), name))
	return differ > 0
}

// sees makes sure that the comparison itself notices one flipped bit.
func sees(runs []*journal.Run, rd Reader) error {
	for _, r := range runs {
		for _, ref := range r.Refs {
			if !ref.Has() {
				continue
			}
			a, _, err := rd.Read(ref)
			if err != nil {
				return err
			}
			if len(a.Steps) == 0 {
				continue
			}
			const k = 5
			before := a.Digest(k)
			v := &a.Steps[len(a.Steps)-1].Value
			v.Value, v.Null = math.Float64frombits(math.Float64bits(v.Value)^1), false
			if a.Digest(k) == before {
				return fmt.Errorf("the comparison is blind: one flipped bit in %s was not seen", r.Key)
			}
			return nil
		}
	}
	return nil
}

// startup says how the discarded pass differs from the rest.
func startup(runs []*journal.Run) (differ int) {
	for _, p := range runs {
		if p.Run != drive.Priming {
			continue
		}
		for _, r := range runs {
			if r.Workload == p.Workload && r.Lifetime == p.Lifetime && compared(r) && r.Arrangement.Mode == workload.Alone {
				_, n := meet(p, r)
				differ = max(differ, n)
				break
			}
		}
	}
	return differ
}

// kinds adds up the kinds of the changed requests.
func kinds(ws []Workload) map[answer.Kind]int {
	out := map[answer.Kind]int{}
	for _, w := range ws {
		for k, n := range w.Kinds {
			out[k] += n
		}
	}
	return out
}

// names joins words as people do.
func names(all []string) string {
	if len(all) < 2 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:len(all)-1], ", ") + " and " + all[len(all)-1]
}
