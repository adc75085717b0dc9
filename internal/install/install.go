// Package install puts a bundle (run package and wheel) into a generation of
// a prefix and makes it the current one for one Python. Everything before the
// rename of the link current leaves the old installation as it was; that
// rename is the commit, for both artifacts at once. What was there and who put
// it there stands in a receipt, enough to check it, to go back and to undo it.
//
// The package starts no process and no Python, and never runs a run package.
//
//	<prefix>/lock                        who may write
//	<prefix>/store/                      package store
//	<prefix>/env/<id>/state.json         numbers, what was moved aside
//	<prefix>/env/<id>/current            link to gen/<n>
//	<prefix>/env/<id>/gen/<n>/site/      content of the wheel
//	<prefix>/env/<id>/gen/<n>/ops/<t>/   content of the run package
//	<prefix>/env/<id>/gen/<n>/start/     what runs when Python starts, for those that need it
//	<prefix>/env/<id>/gen/<n>/receipt.json, probe.json, looks.json
//	<prefix>/env/<id>/aside/<n>/         what --replace moved out of the way
package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/store"
)

// Package is the import name that all flavours share; Dist is its
// distribution name in normal form.
const (
	Package = "batch_invariant_ops"
	Dist    = "batch-invariant-ops"
)

// HookName is the .pth file in site-packages that names current/site.
const HookName = "invar.pth"

// A Prefix is one home of invar.
type Prefix struct {
	Dir  string
	root rootfs.Root // of the machine or image that Dir is in
	lock *store.Lock
}

// Open names the prefix dir. It changes and creates nothing.
func Open(dir string) (*Prefix, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(abs, "\n\r") {
		return nil, report.Problemf(report.Usage, "prefix %q holds a line break, which no .pth file can name", abs)
	}
	return &Prefix{Dir: abs}, nil
}

// OpenIn names the prefix dir inside root, an unpacked image or another
// machine's root. Such a prefix can be read, and never changed.
func OpenIn(root rootfs.Root, dir string) (*Prefix, error) {
	p, err := Open(dir)
	if err == nil {
		p.root = root
	}
	return p, err
}

// Lock takes the prefix for this process until Unlock. Functions that change
// the prefix take the lock themselves, and wait for it, when it is not held.
func (p *Prefix) Lock(ctx context.Context, o store.LockOptions) error {
	if !p.root.Live() {
		return fmt.Errorf("%s lies in another root: it can be read only", p.Dir)
	}
	if p.lock != nil {
		return nil
	}
	l, err := store.Acquire(ctx, p.Dir, o)
	if err != nil {
		return err
	}
	p.lock = l
	if err := p.sweep(); err != nil {
		return errors.Join(err, p.Unlock())
	}
	return nil
}

// scratch is where builds work below the prefix. They hold the lock while
// they do, so what is there when we get it belongs to a killed one.
const scratch = "work"

// sweep removes what killed runs left outside the environments.
func (p *Prefix) sweep() error {
	if err := os.RemoveAll(filepath.Join(p.Dir, scratch)); err != nil {
		return err
	}
	if !exists(store.Dir(p.Dir)) {
		return nil
	}
	s, err := store.Open(p.Dir)
	if err != nil {
		return err
	}
	return s.Sweep()
}

// Unlock gives the prefix back. A prefix in which nothing came to be is removed.
func (p *Prefix) Unlock() error {
	if p.lock == nil {
		return nil
	}
	l := p.lock
	p.lock = nil
	if entries, err := os.ReadDir(p.Dir); err == nil && len(entries) == 1 && entries[0].Name() == "lock" {
		err := l.Remove()
		_ = os.Remove(p.Dir) // another process may have come in between
		return err
	}
	return l.Release()
}

// hold takes the lock for one operation; the result gives it back.
func (p *Prefix) hold(ctx context.Context) (func(), error) {
	if p.lock != nil {
		return func() {}, nil
	}
	if err := p.Lock(ctx, store.LockOptions{}); err != nil {
		return nil, err
	}
	return func() { _ = p.Unlock() }, nil
}

// An env is the part of a prefix that belongs to one Python.
type env struct {
	id   string
	dir  string // <prefix>/env/<id>
	root rootfs.Root
}

func (p *Prefix) env(id string) env { return env{id, filepath.Join(p.Dir, "env", id), p.root} }

// IDs lists the Pythons that this prefix serves or has to clean up for. A
// folder in which an uninstall left files of others is none.
func (p *Prefix) IDs() ([]string, error) {
	dir, err := p.root.Host(filepath.Join(p.Dir, "env"))
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && p.env(e.Name()).known() {
			ids = append(ids, e.Name())
		}
	}
	return ids, err
}

func (e env) known() bool {
	for _, p := range []string{e.statePath(), e.currentLink()} {
		if _, err := e.root.Lstat(p); err == nil {
			return true
		}
	}
	return len(e.root.Glob(filepath.Join(e.dir, "gen", "*", "receipt.json"))) > 0
}

func (e env) gen(n int) string         { return filepath.Join(e.dir, "gen", strconv.Itoa(n)) }
func (e env) currentLink() string      { return filepath.Join(e.dir, "current") }
func (e env) receiptPath(n int) string { return filepath.Join(e.gen(n), "receipt.json") }
func (e env) hookLine() string         { return filepath.Join(e.dir, "current", "site") + "\n" }

// current is the number of the current generation, 0 when there is none.
func (e env) current() (int, error) {
	to, err := e.root.Readlink(e.currentLink())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(filepath.Base(to))
	if err != nil || n < 1 || to != filepath.Join("gen", filepath.Base(to)) {
		return 0, report.Problemf(report.Failed, "%s points to %q", e.currentLink(), to).
			WithWant("gen/<number>", to).
			WithHint("point it back with ln -sfn gen/N, or remove it and install again")
	}
	return n, nil
}

// setCurrent switches to generation n with one rename; 0 removes the link.
func (e env) setCurrent(n int) error {
	link := e.currentLink()
	if n == 0 {
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return store.SyncDir(e.dir)
	}
	tmp := filepath.Join(e.dir, ".current.new") // the lock makes the name ours
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(filepath.Join("gen", strconv.Itoa(n)), tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, link); err != nil {
		return err
	}
	return store.SyncDir(e.dir)
}

// generations lists the numbers of the generation folders, oldest first.
func (e env) generations() ([]int, error) {
	dir, err := e.root.Host(filepath.Join(e.dir, "gen"))
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []int
	for _, d := range entries {
		if n, err := strconv.Atoi(d.Name()); err == nil && n > 0 && strconv.Itoa(n) == d.Name() {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// noSuch is the error for an environment that the prefix does not know.
func (p *Prefix) noSuch(id string) error {
	ids, _ := p.IDs()
	return report.Problemf(report.Failed, "nothing is installed for this Python in %s", p.Dir).
		WithWant("one of the environments "+fmt.Sprint(ids), id).
		WithHint("invar status lists what is installed; --prefix DIR names another prefix")
}
