package invar

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/invar-ops/invar/internal/install"
	"github.com/invar-ops/invar/internal/oppkg"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/store"
)

// installOps puts the operators to their place in the new generation.
func (b *release) installOps(ctx context.Context, tx *install.Tx, ops operators, ext extension) error {
	step := b.Progress.Start(plan.Stage1, "operators of "+ops.pkg.Vendor, 0)
	how, err := b.putOps(ctx, tx, ops)
	if err != nil {
		step.Fail(err)
		return err
	}
	known := b.trust.Sources.RepairsOf(b.r.Version)
	fixed, err := oppkg.Repair(tx.OpsDir(), ops.pkg.Vendor, b.r.CANN.Opp, known, b.r.Repair)
	if err != nil {
		step.Fail(err)
		return err
	}
	note := install.Release{
		Vendor: ops.pkg.Vendor, Version: b.r.Version, SoC: b.r.SoC, CANN: b.r.CANN.CANN.Dir, CANNVersion: b.r.CANN.CANN.Version.String(),
		Compiled: ops.pkg.CANN, Ops: ops.file.From, Extension: ext.from, Installer: how, IntoCANN: b.r.IntoCANN,
		VLLM: b.vllm, Environment: b.vars, Digest: b.r.CANN.Digest,
	}
	if ops.file.Cached {
		note.Ops = origin(ops.file)
	}
	for _, f := range fixed {
		if f.Done {
			note.Repaired = append(note.Repaired, f.Link)
		}
	}
	if err := tx.AdoptOps(ctx, ops.file.Path, ops.file.Name, note); err != nil {
		step.Fail(err)
		return err
	}
	step.Done("installed by " + how)
	for _, f := range fixed {
		if f.Done {
			b.Progress.Note(fmt.Sprintf("repair    %s -> %s, since %s", f.Link, f.To, f.Why))
		} else {
			b.Progress.Note(fmt.Sprintf("repair    not done: %s -> %s, needed since %s; --repair makes the link", f.Link, f.To, f.Why))
		}
	}
	return nil
}

// putOps runs the package's own script, or copies what it would copy. It says how.
func (b *release) putOps(ctx context.Context, tx *install.Tx, ops operators) (string, error) {
	if b.r.Installer == "copy" {
		if err := ops.pkg.Copy(tx.OpsDir(), b.p.Arch); err != nil {
			return "", store.Explain(err, "prefix "+b.Prefix)
		}
		return "a copy of its files", oppkg.Whole(tx.OpsDir(), ops.pkg.Vendor)
	}
	scratch := filepath.Join(b.work, "installer")
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return "", err
	}
	log := b.log("stage1")
	ran, err := ops.pkg.Install(ctx, oppkg.Script{
		Runner: b.Runner, Name: ops.script, To: tx.OpsDir(), Scratch: scratch, Log: log, Watch: []string{filepath.Join(b.r.CANN.Opp, "vendors")},
	})
	if err != nil {
		b.diagnose(err, log)
		return "", err
	}
	how := "its own script"
	switch {
	case ran.Confined.Files && ran.Confined.Network:
		how += ", confined to its folder and without network"
	case ran.Confined.Files:
		how += ", confined to its folder"
	case ran.Confined.Network:
		how += ", without network"
	}
	return how, nil
}
