package install

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/invar-ops/invar/internal/store"
)

// A Status is what a prefix holds, read from files only.
type Status struct {
	Prefix string      `json:"prefix"`
	Envs   []EnvStatus `json:"envs"`
	Store  StoreStatus `json:"store"`
}

// An EnvStatus is what is installed for one Python.
type EnvStatus struct {
	ID          string             `json:"id"`
	Python      Env                `json:"python"`
	Current     int                `json:"current"` // 0 when nothing is installed
	Target      string             `json:"target,omitempty"`
	Flavour     string             `json:"flavour,omitempty"`
	Contract    string             `json:"contract,omitempty"`
	RunPackage  Artifact           `json:"run_package"`
	Wheel       Artifact           `json:"wheel"`
	Installed   time.Time          `json:"installed"`
	Health      Health             `json:"health"`
	Generations []GenerationStatus `json:"generations"`
	Moved       []Moved            `json:"moved,omitempty"`
	Probe       json.RawMessage    `json:"probe,omitempty"` // as probe saved it
}

// A GenerationStatus is one generation that is on disk.
type GenerationStatus struct {
	Number    int       `json:"number"`
	State     string    `json:"state"` // "current", "old", "leftover"
	Target    string    `json:"target,omitempty"`
	Flavour   string    `json:"flavour,omitempty"`
	Installed time.Time `json:"installed"`
	Bytes     int64     `json:"bytes"` // of the files in its receipt
}

// A StoreStatus is the size of the store.
type StoreStatus struct {
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

// Status reads what is installed. It takes no lock and changes nothing.
func (p *Prefix) Status(ctx context.Context, environ []string) (Status, error) {
	s := Status{Prefix: p.Dir, Envs: []EnvStatus{}}
	ids, err := p.IDs()
	if err != nil {
		return s, err
	}
	for _, id := range ids {
		st, err := p.envStatus(ctx, p.env(id), environ)
		if err != nil {
			return s, err
		}
		s.Envs = append(s.Envs, st)
	}
	objects, err := os.ReadDir(filepath.Join(store.Dir(p.Dir), "sha256"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	for _, o := range objects {
		if st, err := o.Info(); err == nil {
			s.Store.Objects++
			s.Store.Bytes += st.Size()
		}
	}
	return s, nil
}

func (p *Prefix) envStatus(ctx context.Context, e env, environ []string) (EnvStatus, error) {
	st := EnvStatus{ID: e.id, Generations: []GenerationStatus{}}
	state, err := e.readState()
	if err != nil {
		return st, err
	}
	st.Moved, st.Python = state.Moved, Env{ID: e.id, Purelib: state.Purelib}
	if st.Current, err = e.current(); err != nil {
		st.Health.add(Fault{Path: e.currentLink(), Kind: "receipt", Want: "a link to gen/N", Got: err.Error(), Hint: hintAgain})
	}
	gens, err := e.generations()
	if err != nil {
		return st, err
	}
	for _, n := range gens {
		st.Generations = append(st.Generations, e.generationStatus(n, st.Current, state))
	}
	if st.Current == 0 {
		return st, nil
	}
	r, err := e.readReceipt(st.Current)
	if err != nil {
		st.Health.add(Fault{Path: e.receiptPath(st.Current), Kind: "receipt", Want: "a readable receipt", Got: err.Error(), Hint: hintAgain})
		return st, nil
	}
	st.Python, st.Target, st.Flavour, st.Contract = r.Python, r.Target, r.Flavour, r.Contract
	st.RunPackage, st.Wheel, st.Installed = r.RunPackage, r.Wheel, r.Installed
	var probe json.RawMessage
	if p.Probe(r, &probe) == nil {
		st.Probe = probe
	}
	st.Health, err = Check(ctx, r, environ)
	return st, err
}

func (e env) generationStatus(n, current int, s state) GenerationStatus {
	g := GenerationStatus{Number: n, State: "old"}
	switch {
	case n == current:
		g.State = "current"
	case slices.Contains(s.Others, n):
		g.State = "files of others"
	case !slices.Contains(s.Committed, n):
		g.State = "leftover"
	}
	if r, err := e.readReceipt(n); err == nil {
		g.Target, g.Flavour, g.Installed = r.Target, r.Flavour, r.Installed
		for _, f := range r.Files {
			g.Bytes += f.Size
		}
	}
	return g
}

// byNumber sorts generations, newest first.
func byNumber(gens []int) []int {
	out := slices.Clone(gens)
	slices.SortFunc(out, func(a, b int) int { return cmp.Compare(b, a) })
	return out
}
