package install

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/store"
)

// A Removed says what Uninstall did and what it left.
type Removed struct {
	Envs     []Env    `json:"envs"`     // what was uninstalled
	Restored []Moved  `json:"restored"` // brought back to site-packages
	Left     []string `json:"left"`     // files that invar did not make, and a hook that was changed
	Prefix   bool     `json:"prefix"`   // the prefix itself is gone
}

// UninstallOptions say what to uninstall.
type UninstallOptions struct {
	ID string // one Python; "" is all of the prefix
	// Also are further names below the prefix that invar made (logs, its own
	// Python); they go when the last environment goes.
	Also []string
}

// Uninstall removes what invar installed and brings back what it had moved
// aside. Files that it did not make stay and are reported. It can be cut off
// anywhere and called again.
func (p *Prefix) Uninstall(ctx context.Context, o UninstallOptions) (Removed, error) {
	r := Removed{Envs: []Env{}, Restored: []Moved{}, Left: []string{}}
	ids, err := p.IDs()
	if err != nil {
		return r, err
	}
	// Without a Python there may still be what a killed uninstall left.
	empty := len(ids) == 0 && !exists(store.Dir(p.Dir)) && !exists(filepath.Join(p.Dir, "env"))
	if o.ID != "" && !slices.Contains(ids, o.ID) || empty {
		return r, p.noSuch(o.ID)
	}
	release, err := p.hold(ctx)
	if err != nil {
		return r, err
	}
	defer release()
	for _, id := range ids {
		if o.ID != "" && id != o.ID {
			continue
		}
		if err := r.env(ctx, p.env(id)); err != nil {
			return r, store.Explain(err, "prefix "+p.Dir)
		}
	}
	if ids, err := p.IDs(); err != nil || len(ids) > 0 {
		return r, err
	}
	removeEmptyTree(filepath.Join(p.Dir, "env"))
	for _, name := range append(slices.Clone(o.Also), "store") {
		if err := os.RemoveAll(filepath.Join(p.Dir, name)); err != nil {
			return r, err
		}
	}
	r.prefix(p)
	return r, nil
}

// prefix removes the lock and the folder when nothing else is in it.
func (r *Removed) prefix(p *Prefix) {
	entries, err := os.ReadDir(p.Dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.Name() != filepath.Base(store.LockPath(p.Dir)) {
			r.Left = append(r.Left, filepath.Join(p.Dir, e.Name()))
		}
	}
	if len(r.Left) == 0 && p.lock != nil {
		_ = p.Unlock() // removes a folder that holds the lock alone
		r.Prefix = !exists(p.Dir)
	}
}

func (r *Removed) env(ctx context.Context, e env) error {
	s, err := e.recover()
	if err != nil {
		return err
	}
	cur, err := e.current()
	if err != nil {
		return err
	}
	who := Env{ID: e.id, Purelib: s.Purelib}
	hook := filepath.Join(s.Purelib, HookName)
	if rec, err := e.readReceipt(cur); err == nil {
		who, hook = rec.Python, rec.Hook.Path
	}
	r.Envs, r.Restored = append(r.Envs, who), append(r.Restored, s.later(0)...)
	if err := e.setCurrent(0); err != nil { // from here on Python sees nothing of invar
		return err
	}
	if err := e.settle(&s, 0); err != nil {
		return err
	}
	if exists(hook) {
		// Another prefix's is none of ours; one that was changed is the user's.
		if _, state, _, err := e.readHook(hook); err == nil && state == HookChanged {
			r.Left = append(r.Left, hook)
		}
	}
	gens, err := e.generations()
	if err != nil {
		return err
	}
	for _, n := range gens {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if slices.Contains(s.Others, n) {
			r.Left = append(r.Left, remaining(e.gen(n))...)
			continue
		}
		left, err := e.removeGeneration(n)
		if err != nil {
			return err
		}
		r.Left = append(r.Left, left...)
	}
	_ = os.Remove(filepath.Join(e.dir, "gen"))
	r.Left = append(r.Left, remaining(filepath.Join(e.dir, "aside"))...)
	if err := e.removeNotes(); err != nil {
		return err
	}
	removeEmpty(e.dir, filepath.Dir(filepath.Dir(e.dir)))
	return nil
}

// removeNotes removes the state, and the plans that builds keep beside it.
func (e env) removeNotes() error {
	plans, err := filepath.Glob(filepath.Join(e.dir, "plan-*.json*"))
	if err != nil {
		return err
	}
	for _, f := range append(plans, e.statePath()) {
		if err := os.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// removeGeneration removes what the receipt of generation n lists, caches of
// it, and the receipt last. It returns what else is there.
func (e env) removeGeneration(n int) (left []string, err error) {
	dir := e.gen(n)
	r, err := e.readReceipt(n)
	if err != nil {
		return nil, os.RemoveAll(dir) // never finished, or unreadable: all of it is invar's
	}
	files, dirs, err := listFiles(dir)
	if err != nil {
		return nil, err
	}
	ours := map[string]bool{}
	for _, f := range r.Files {
		ours[f.Path] = true
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Path)
		switch {
		case f.Path == "receipt.json":
		case ours[f.Path] || derived(f.Path, r.Files):
			if err := os.Remove(path); err != nil {
				return nil, err
			}
		default:
			left = append(left, path)
		}
	}
	if err := os.Remove(e.receiptPath(n)); err != nil {
		return nil, err
	}
	for _, d := range slices.Backward(dirs) {
		_ = os.Remove(d) // stays when something is in it
	}
	return left, nil
}

// removeEmptyTree removes dir and the folders below it that hold no files.
func removeEmptyTree(dir string) {
	_, dirs, err := listFiles(dir)
	if err != nil {
		return
	}
	for _, d := range slices.Backward(dirs) {
		_ = os.Remove(d) // stays when something is in it
	}
}

// remaining lists the files below dir.
func remaining(dir string) []string {
	files, _, err := listFiles(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, f := range files {
		if !strings.HasSuffix(f.Path, ".invar-part") {
			out = append(out, filepath.Join(dir, f.Path))
		}
	}
	return out
}
