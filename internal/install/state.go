package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/invar-ops/invar/internal/store"
)

const stateSchema = 1

// A state is what an environment has to know beyond its generations.
type state struct {
	Schema    int     `json:"schema"`
	Purelib   string  `json:"purelib"`
	Next      int     `json:"next"`      // number of the next generation; never used twice
	Committed []int   `json:"committed"` // generations that have been current and are still there
	Moved     []Moved `json:"moved"`     // changes to site-packages that can be undone
	// Others are numbers whose folders hold files of others only, which an
	// uninstall left there.
	Others []int `json:"others,omitempty"`
}

// A Moved is one change outside the prefix: something moved aside, the hook, or
// a vendor in CANN's tree (see intocann.go). It was planned by a generation and holds while the current generation
// is that one or a later one; see settle.
type Moved struct {
	Generation int    `json:"generation"`
	Kind       string `json:"kind"`           // "aside", "hook", "vendor" or "priority"
	From       string `json:"from"`           // where it was, absolute
	To         string `json:"to,omitempty"`   // where it is, below the environment's folder
	Was        string `json:"was,omitempty"`  // content of the file before, "" when there was none
	Now        string `json:"now,omitempty"`  // content, or end of the link, afterwards; "" is the plain hook
	What       string `json:"what,omitempty"` // for people: "batch_invariant_ops 0.9 (pip)"
	Done       bool   `json:"done"`
}

func (e env) statePath() string { return filepath.Join(e.dir, "state.json") }

// readState reads the state. One that is missing or unreadable is made again
// from the generations and their receipts: numbers stay unique and what was
// moved aside is not forgotten.
func (e env) readState() (state, error) {
	b, err := e.root.ReadFile(e.statePath())
	if err == nil {
		var s state
		if derr := store.DecodeJSON(b, &s); derr == nil && s.Schema == stateSchema {
			return s, nil
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return state{}, err
	}
	return e.rebuildState()
}

func (e env) rebuildState() (state, error) {
	s := state{Schema: stateSchema, Next: 1}
	gens, err := e.generations()
	if err != nil {
		return s, err
	}
	for _, n := range gens {
		s.Next = n + 1
		r, err := e.readReceipt(n)
		if err != nil {
			// Begin writes the state before the folder: without a state this is
			// no leftover of a killed run.
			s.Others = append(s.Others, n)
			continue
		}
		s.Committed, s.Purelib = append(s.Committed, n), r.Python.Purelib
		s.Moved = append(s.Moved, r.Replaced...)
	}
	for i := range s.Moved {
		s.Moved[i].Done = true
	}
	return s, nil
}

func (e env) writeState(s state) error {
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return store.WriteFile(e.statePath(), append(b, '\n'), 0o644)
}

// recover brings the environment into order after a run that was killed:
// changes outside the prefix are finished or undone, unfinished generations
// are removed. It changes nothing when the last run ended by itself.
func (e env) recover() (state, error) {
	s, err := e.readState()
	if err != nil {
		return s, err
	}
	cur, err := e.current()
	if err != nil {
		return s, err
	}
	if cur != 0 && !slices.Contains(s.Committed, cur) {
		s.Committed = append(s.Committed, cur) // killed right after the commit
	}
	if err := e.settle(&s, cur); err != nil {
		return s, err
	}
	gens, err := e.generations()
	if err != nil {
		return s, err
	}
	for _, n := range gens {
		if n >= s.Next {
			s.Next = n + 1
		}
		if slices.Contains(s.Committed, n) || slices.Contains(s.Others, n) {
			continue
		}
		if err := os.RemoveAll(e.gen(n)); err != nil {
			return s, fmt.Errorf("leftover generation %d: %w", n, err)
		}
	}
	s.Committed = slices.DeleteFunc(s.Committed, func(n int) bool { return !slices.Contains(gens, n) })
	return s, e.sweep(s)
}

// sweep removes temporary files of killed runs, beside the hook too.
func (e env) sweep(s state) error {
	patterns := []string{filepath.Join(e.dir, ".current.new")}
	for _, dir := range append([]string{e.dir}, e.genDirs()...) {
		patterns = append(patterns, filepath.Join(dir, ".*.tmp*"))
	}
	if s.Purelib != "" {
		patterns = append(patterns, filepath.Join(s.Purelib, "."+HookName+".tmp*"))
	}
	for _, pattern := range patterns {
		left, err := filepath.Glob(pattern)
		if err != nil {
			return err
		}
		for _, p := range left {
			if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

func (e env) genDirs() []string {
	gens, _ := e.generations()
	out := make([]string, len(gens))
	for i, n := range gens {
		out[i] = e.gen(n)
	}
	return out
}
