package install

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/invar-ops/invar/internal/store"
)

// settle makes the world outside the prefix what generation cur wants: a
// change planned by cur or an earlier generation is carried out, one of a
// later generation (that never was committed, or was rolled back) is undone
// and forgotten. It can be cut off anywhere and called again.
func (e env) settle(s *state, cur int) error {
	var errs []error
	kept := s.Moved[:0:0]
	changed := false
	// Newest first when undoing: a hook that was taken over twice ends as it began.
	for _, m := range slices.Backward(s.Moved) {
		var err error
		if m.Generation > cur {
			changed = true
			if !s.repair(m, cur) {
				err = e.undo(m)
			}
			errs = append(errs, err)
		}
		if m.Generation <= cur || err != nil {
			kept = append(kept, m)
		}
	}
	slices.Reverse(kept)
	// In their order when carrying out: a link comes where something was moved aside.
	for i, m := range kept {
		if m.Generation > cur || m.Done {
			continue
		}
		changed = true
		err := e.carryOut(m)
		kept[i].Done = err == nil
		errs = append(errs, err)
	}
	s.Moved = kept
	if !changed {
		return nil
	}
	return errors.Join(append(errs, e.writeState(*s))...)
}

// repair reports whether m only wrote again a hook that generation cur has
// been using, after somebody else had removed it: undoing it would break cur.
func (s state) repair(m Moved, cur int) bool {
	return m.Kind == "hook" && m.Was == "" && slices.ContainsFunc(s.Moved, func(o Moved) bool {
		return o.Kind == "hook" && o.From == m.From && o.Generation <= cur
	})
}

func (e env) carryOut(m Moved) error {
	switch m.Kind {
	case "hook":
		text := m.Now
		if text == "" {
			text = e.hookLine()
		}
		return store.Explain(e.write(m.From, text), filepath.Dir(m.From))
	case "vendor":
		return m.linkVendor()
	case "priority":
		return m.setPriority(e)
	}
	to := filepath.Join(e.dir, m.To)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return move(m.From, to)
}

// undo puts back what m changed. What has been changed by others since stays
// as they left it.
func (e env) undo(m Moved) error {
	switch m.Kind {
	case "vendor":
		return m.unlinkVendor()
	case "priority":
		return m.unsetPriority(e)
	}
	if m.Kind == "hook" {
		_ = os.Remove(e.temp(m.From))
		now, err := os.ReadFile(m.From)
		switch {
		case errors.Is(err, fs.ErrNotExist) || (err == nil && !e.ownHook(string(now))):
			return nil
		case err != nil:
			return err
		case m.Was != "":
			return e.write(m.From, m.Was)
		}
		if err := os.Remove(m.From); err != nil {
			return store.Explain(err, filepath.Dir(m.From))
		}
		return store.SyncDir(filepath.Dir(m.From))
	}
	to := filepath.Join(e.dir, m.To)
	if exists(to) && exists(m.From) && !sameTree(to, m.From) {
		return nil // somebody installed another one since
	}
	if !exists(to) && !exists(m.From) {
		return nil // both were removed by hand
	}
	if err := move(to, m.From); err != nil {
		return err
	}
	removeEmpty(filepath.Dir(to), e.dir)
	return nil
}

// temp is the name of a file of others while it is written anew. It is the same
// in each run, so that the next one finds what a killed one has left.
func (e env) temp(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".invar-"+filepath.Base(e.dir))
}

// write replaces a file outside the prefix as a whole. Mode 644, whatever it was.
func (e env) write(path, text string) error {
	f, err := os.OpenFile(e.temp(path), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Chmod(0o644) // whatever the umask
	}
	if err == nil {
		err = store.Commit(f, path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
