package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/invar-ops/invar/internal/store"
)

// Commit makes the generation the current one. When it returns an error, the
// one before is current.
func (tx *Tx) Commit(ctx context.Context) (Receipt, error) {
	if tx.ops.SHA256 == "" || tx.wheel.SHA256 == "" {
		return Receipt{}, errors.New("commit of a generation without run package or wheel")
	}
	r, err := tx.commit(ctx)
	if err != nil {
		err = store.Explain(err, "prefix "+tx.p.Dir)
		tx.Abort()
		return Receipt{}, err
	}
	tx.ended = true
	tx.release()
	return r, nil
}

func (tx *Tx) commit(ctx context.Context) (Receipt, error) {
	files, err := seal(ctx, tx.e.gen(tx.gen))
	if err != nil {
		return Receipt{}, err
	}
	r := tx.receipt(files)
	if err := tx.e.writeReceipt(r); err != nil {
		return Receipt{}, err
	}
	if err := store.SyncDir(filepath.Dir(tx.e.gen(tx.gen))); err != nil {
		return Receipt{}, err
	}
	if moves := tx.plan.moves(tx.gen); len(moves) > 0 {
		// From here on a killed run is put right by the next one: see settle.
		tx.state.Moved = append(tx.state.Moved, moves...)
		if err := tx.e.writeState(tx.state); err != nil {
			return Receipt{}, err
		}
		if err := tx.early(); err != nil {
			return Receipt{}, err
		}
	}
	if ctx.Err() != nil {
		return Receipt{}, context.Cause(ctx) // the last moment to turn back
	}
	if err := tx.e.setCurrent(tx.gen); err != nil {
		return Receipt{}, err
	}
	if err := tx.e.settle(&tx.state, tx.gen); err != nil {
		return Receipt{}, err
	}
	tx.state.Committed = append(tx.state.Committed, tx.gen)
	return r, tx.e.writeState(tx.state)
}

// early writes a hook where none was. It names a folder that is not there yet,
// which Python passes over, so that the rename of current is the one moment at
// which the installation appears.
func (tx *Tx) early() error {
	for i, m := range tx.state.Moved {
		if m.Kind == "hook" && m.Generation == tx.gen && m.Was == "" {
			if err := tx.e.carryOut(m); err != nil {
				return err
			}
			tx.state.Moved[i].Done = true
		}
	}
	return nil
}

func (tx *Tx) receipt(files []File) Receipt {
	b := tx.req.Bundle
	return Receipt{
		Schema: receiptSchema, Generation: tx.gen, Previous: tx.previous,
		Target: b.Target, Flavour: b.Flavour, Python: envOf(tx.req.Python),
		RunPackage: tx.ops, Wheel: tx.wheel, Fingerprint: b.Fingerprint, Contract: b.Contract,
		Prefix: tx.p.Dir, Hook: Hook{tx.plan.hookPath, tx.e.hookContent(tx.req.Startup)},
		Release: tx.note, Replaced: tx.plan.moves(tx.gen), Files: files,
		Invar: tx.req.Invar, Installed: time.Now().UTC().Truncate(time.Second),
	}
}

// Abort undoes what was done and gives the lock back. After Commit it does nothing.
func (tx *Tx) Abort() {
	if tx.ended {
		return
	}
	tx.ended = true
	defer tx.release()
	if tx.gen == 0 {
		return
	}
	// What fails here is put right by the next run, which finds the same leftovers.
	if cur, err := tx.e.current(); err == nil && cur == tx.gen {
		_ = tx.e.setCurrent(tx.previous)
	}
	_ = tx.e.settle(&tx.state, tx.previous)
	_ = os.RemoveAll(tx.e.gen(tx.gen))
	tx.e.removeIfEmpty()
}

// removeIfEmpty removes the folders of an environment in which nothing is installed.
func (e env) removeIfEmpty() {
	gens, err := e.generations()
	if err != nil || len(gens) > 0 || exists(e.currentLink()) || exists(filepath.Join(e.dir, "aside")) {
		return
	}
	_ = e.removeNotes()
	_ = os.Remove(filepath.Join(e.dir, "gen"))
	removeEmpty(e.dir, filepath.Dir(filepath.Dir(e.dir)))
}
