package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// actionSchema counts incompatible changes of the action record.
const actionSchema = 1

// An Action says what a build step with this fingerprint produced.
type Action struct {
	Schema      int               `json:"schema"`
	Fingerprint string            `json:"fingerprint"` // hex SHA-256 of the step's inputs
	Step        string            `json:"step"`        // for people
	Made        time.Time         `json:"made"`
	Outputs     map[string]Object `json:"outputs"` // by the name that the step gives them
	// Facts are small results that are no files, such as a wheel's tag.
	Facts map[string]string `json:"facts,omitempty"`
}

func (s *Store) actionPath(fingerprint string) string {
	return filepath.Join(s.dir, "actions", fingerprint+".json")
}

// Record writes a after its outputs have been Put. A step that is cut short
// leaves no record and so runs again.
func (s *Store) Record(a Action) error {
	if !digestRE.MatchString(a.Fingerprint) {
		return fmt.Errorf("fingerprint %q: want 64 hex digits", a.Fingerprint)
	}
	a.Schema = actionSchema
	b, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	return Explain(WriteFile(s.actionPath(a.Fingerprint), append(b, '\n'), 0o644), s.dir)
}

// Lookup finds what a step with this fingerprint produced, with every output
// verified. When there is nothing to reuse, why says the reason and err is nil.
func (s *Store) Lookup(ctx context.Context, fingerprint string) (a Action, why string, err error) {
	if !digestRE.MatchString(fingerprint) {
		return Action{}, "", fmt.Errorf("fingerprint %q: want 64 hex digits", fingerprint)
	}
	a, err = readAction(s.actionPath(fingerprint))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Action{}, "no step with these inputs has run", nil
	case err != nil:
		// A record that cannot be read is worth no more than none.
		return Action{}, fmt.Sprintf("its record cannot be used: %v", err), nil
	case a.Fingerprint != fingerprint:
		return Action{}, "its record belongs to another step", nil
	}
	for name, o := range a.Outputs {
		_, err := s.Verify(ctx, o.SHA256)
		damaged, isDamaged := errors.AsType[*DamagedError](err)
		switch {
		case isDamaged:
			return Action{}, name + ": " + damaged.Error(), nil
		case errors.Is(err, fs.ErrNotExist):
			return Action{}, name + " is no longer in the store", nil
		case err != nil:
			return Action{}, "", err
		}
	}
	return a, "", nil
}

func readAction(path string) (Action, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return Action{}, err
	}
	var a Action
	if err := DecodeJSON(b, &a); err != nil {
		return Action{}, err
	}
	if a.Schema != actionSchema {
		return Action{}, fmt.Errorf("schema %d, want %d", a.Schema, actionSchema)
	}
	return a, nil
}

// DecodeJSON reads the one JSON value in b; unknown keys and trailing text are errors.
func DecodeJSON(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the JSON value")
	}
	return nil
}

// Garbage is what Prune removed.
type Garbage struct {
	Objects int   `json:"objects"`
	Actions int   `json:"actions"`
	Bytes   int64 `json:"bytes"`
}

// Prune removes what is left of killed runs, objects that keep does not name,
// and records that lost an output. With dry it only counts.
func (s *Store) Prune(keep []string, dry bool) (Garbage, error) {
	var g Garbage
	remove := func(path string) error {
		if dry {
			return nil
		}
		return os.Remove(path)
	}
	objects, err := os.ReadDir(filepath.Join(s.dir, "sha256"))
	if err != nil {
		return g, err
	}
	for _, o := range objects {
		if slices.Contains(keep, o.Name()) || !digestRE.MatchString(o.Name()) {
			continue
		}
		if st, err := o.Info(); err == nil {
			g.Bytes += st.Size()
		}
		g.Objects++
		if err := remove(s.Path(o.Name())); err != nil {
			return g, err
		}
	}
	actions, err := filepath.Glob(filepath.Join(s.dir, "actions", "*.json"))
	if err != nil {
		return g, err
	}
	for _, path := range actions {
		a, err := readAction(path)
		if err == nil && a.keeps(keep) {
			continue
		}
		g.Actions++
		if err := remove(path); err != nil {
			return g, err
		}
	}
	if dry {
		return g, nil
	}
	return g, s.Sweep()
}

func (a Action) keeps(keep []string) bool {
	for _, o := range a.Outputs {
		if !slices.Contains(keep, o.SHA256) {
			return false
		}
	}
	return true
}

// Sweep removes temporary files that killed runs left. Only the holder of the
// prefix's lock may call it: another's file may be under way.
func (s *Store) Sweep() error {
	for _, pattern := range []string{"tmp/*", "actions/.*.tmp*"} {
		left, err := filepath.Glob(filepath.Join(s.dir, pattern))
		if err != nil {
			return err
		}
		for _, p := range left {
			if err := os.RemoveAll(p); err != nil {
				return err
			}
		}
	}
	return nil
}
