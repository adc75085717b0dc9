package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/invar-ops/invar/internal/python"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/runpkg"
	"github.com/invar-ops/invar/internal/store"
	"github.com/invar-ops/invar/internal/wheel"
)

// A Bundle is what is installed: both artifacts and what is known of them.
type Bundle struct {
	Target      string
	Flavour     string // "cpu", "cuda" or "ascend"
	RunPackage  Artifact
	Wheel       Artifact
	Fingerprint string // of the plan that made the bundle
	Contract    string
	Supersedes  []string // flavours that this one holds, too: it takes their place unasked
}

// A Request says what to install, for which Python and what may be replaced.
type Request struct {
	Bundle   Bundle
	Python   python.Python
	Env      []string // environment that the Python will run with: PYTHONPATH counts
	Replace  bool     // move aside what others installed; change the flavour
	TakeOver bool     // take the Python over from another prefix
	Startup  bool     // a module runs when Python starts: see PutStartup
	Vendor   *Vendor  // also linked into CANN's tree; nil is not
	Invar    string   // version of invar
	GPUs     []int    // compute capabilities of the devices of this host, where GPU code is installed
}

// A Tx is one installation under way. Nothing that a Python sees changes
// before Commit.
type Tx struct {
	p        *Prefix
	e        env
	req      Request
	state    state
	plan     preflight
	gen      int
	previous int
	wheel    Artifact
	ops      Artifact
	note     *Release
	release  func()
	ended    bool
}

// Apply installs a ready bundle: run package and wheel are files.
func (p *Prefix) Apply(ctx context.Context, req Request, runPackage, wheelFile string) (Receipt, error) {
	tx, err := p.Begin(ctx, req)
	if err != nil {
		return Receipt{}, err
	}
	defer tx.Abort()
	if err := tx.InstallOps(ctx, runPackage); err != nil {
		return Receipt{}, err
	}
	if err := tx.InstallWheel(ctx, wheelFile); err != nil {
		return Receipt{}, err
	}
	return tx.Commit(ctx)
}

var nameRE = regexp.MustCompile(`^[a-z0-9][a-z0-9_]*$`)

// Begin takes the lock, brings the environment into order after a killed run,
// and checks everything that can be checked before anything changes.
func (p *Prefix) Begin(ctx context.Context, req Request) (*Tx, error) {
	if !nameRE.MatchString(req.Bundle.Target) || !slices.Contains(flavours, req.Bundle.Flavour) {
		return nil, fmt.Errorf("target %q, flavour %q: want a target name and one of %q", req.Bundle.Target, req.Bundle.Flavour, flavours)
	}
	release, err := p.hold(ctx)
	if err != nil {
		return nil, err
	}
	tx := &Tx{p: p, e: p.env(req.Python.ID()), req: req, release: release}
	if err := tx.begin(ctx); err != nil {
		tx.Abort()
		return nil, store.Explain(err, "prefix "+p.Dir)
	}
	return tx, nil
}

func (tx *Tx) begin(ctx context.Context) error {
	var err error
	if tx.state, err = tx.e.recover(); err != nil {
		return err
	}
	if tx.previous, err = tx.e.current(); err != nil {
		return err
	}
	if tx.plan, err = tx.examine(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := os.MkdirAll(filepath.Join(tx.e.dir, "gen"), 0o755); err != nil {
		return err
	}
	n := tx.state.Next
	tx.state.Next, tx.state.Purelib = n+1, tx.req.Python.Purelib
	if err := tx.e.writeState(tx.state); err != nil {
		return err
	}
	tx.gen = n
	return os.Mkdir(tx.e.gen(n), 0o755)
}

// Generation is the number that this installation gets.
func (tx *Tx) Generation() int { return tx.gen }

// OpsDir is where the content of the run package lies until Commit; stage 2
// may be built against it. Afterwards it is reached through Receipt.Ops.
func (tx *Tx) OpsDir() string { return filepath.Join(tx.e.gen(tx.gen), "ops", tx.req.Bundle.Target) }

// SiteDir is where the content of the wheel lies until Commit.
func (tx *Tx) SiteDir() string { return filepath.Join(tx.e.gen(tx.gen), "site") }

// InstallOps unpacks the run package at path without running any of it.
func (tx *Tx) InstallOps(ctx context.Context, path string) error {
	a, err := artifact(ctx, path, tx.req.Bundle.RunPackage)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(tx.OpsDir()), 0o755); err != nil {
		return store.Explain(err, "prefix "+tx.p.Dir)
	}
	pkg, err := runpkg.Open(path)
	if err != nil {
		return err
	}
	defer pkg.Close()
	if err := checkGPUs(pkg.Manifest, tx.req.GPUs); err != nil {
		return err
	}
	if _, err := pkg.Extract(ctx, tx.OpsDir(), runpkg.Options{}); err != nil {
		return store.Explain(err, "prefix "+tx.p.Dir)
	}
	tx.ops = a
	return nil
}

// InstallWheel unpacks the wheel at path.
func (tx *Tx) InstallWheel(ctx context.Context, path string) error {
	a, err := artifact(ctx, path, tx.req.Bundle.Wheel)
	if err != nil {
		return err
	}
	w, err := wheel.Open(path)
	if err != nil {
		return err
	}
	defer w.Close()
	if err := os.MkdirAll(tx.SiteDir(), 0o755); err != nil {
		return store.Explain(err, "prefix "+tx.p.Dir)
	}
	if _, err := w.Extract(ctx, tx.SiteDir()); err != nil {
		return store.Explain(err, "prefix "+tx.p.Dir)
	}
	if !isRegularPackage(rootfs.Root{}, filepath.Join(tx.SiteDir(), Package)) {
		return report.Problemf(report.Failed, "%s does not hold the package %s", filepath.Base(path), Package).
			WithWant(Package+"/__init__.py", "none")
	}
	tx.wheel = a
	return nil
}

// AdoptOps takes what its owner's installer has put into OpsDir for the
// content of the run package at path; note is what the receipt says of it.
func (tx *Tx) AdoptOps(ctx context.Context, path, name string, note Release) error {
	if entries, err := os.ReadDir(tx.OpsDir()); err != nil || len(entries) == 0 {
		return fmt.Errorf("nothing was installed to %s", tx.OpsDir())
	}
	a, err := artifact(ctx, path, tx.req.Bundle.RunPackage)
	if err != nil {
		return err
	}
	a.Name = name
	tx.ops, tx.note = a, &note
	return nil
}

// PutStartup writes the module that runs when Python starts.
func (tx *Tx) PutStartup(content []byte) error {
	to := filepath.Join(tx.e.gen(tx.gen), startupModule)
	err := os.MkdirAll(filepath.Dir(to), 0o755)
	if err == nil {
		err = os.WriteFile(to, content, 0o644)
	}
	return store.Explain(err, "prefix "+tx.p.Dir)
}

// artifact measures the file at path and compares it with what is expected of
// it; empty fields of want are not compared.
func artifact(ctx context.Context, path string, want Artifact) (Artifact, error) {
	sum, size, err := store.Digest(ctx, path)
	if err != nil {
		return Artifact{}, err
	}
	if want.SHA256 != "" && want.SHA256 != sum {
		return Artifact{}, report.Problemf(report.Failed, "%s is not the file that was built", path).
			WithWant("sha256 "+want.SHA256, sum).WithHint("build it again")
	}
	if want.Name == "" {
		want.Name = filepath.Base(path)
	}
	return Artifact{want.Name, sum, size}, nil
}
