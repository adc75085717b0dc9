package install

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/run"
)

// flavours are the forms of the package. One Python holds one of them: all
// have the same import name and register the same namespace with torch.
var flavours = []string{"cpu", "cuda", "ascend"}

// A preflight is what Begin found and what Commit will change outside the prefix.
type preflight struct {
	hookPath string
	hook     *Moved  // nil when the hook is right already
	aside    []Moved // to be moved out of the way
	vendor   []Moved // changes in CANN's tree
}

// moves are the planned changes for generation n.
func (f preflight) moves(n int) []Moved {
	var out []Moved
	for i, m := range f.aside {
		m.Generation = n
		m.To = filepath.Join("aside", fmt.Sprint(n), fmt.Sprintf("%d-%s", i, filepath.Base(m.From)))
		out = append(out, m)
	}
	if f.hook != nil {
		m := *f.hook
		m.Generation = n
		out = append(out, m)
	}
	for _, m := range f.vendor {
		m.Generation = n
		out = append(out, m)
	}
	return out
}

// examine checks everything that stands in the way of an installation, and
// reports all of it at once. It changes nothing.
func (tx *Tx) examine() (preflight, error) {
	f := preflight{hookPath: filepath.Join(tx.req.Python.Purelib, HookName)}
	var unmet []report.Requirement
	for _, check := range []func(*preflight) ([]report.Requirement, error){tx.checkFlavour, tx.checkHooks, tx.checkForeign, tx.checkVendor, tx.checkAccess} {
		u, err := check(&f)
		if err != nil {
			return f, err
		}
		unmet = append(unmet, u...)
	}
	switch len(unmet) {
	case 0:
		return f, nil
	case 1:
		u := unmet[0]
		return f, &report.Problem{
			Err: fmt.Errorf("%s", u.Name), Want: u.Want, Got: u.Got, Hint: u.Hint,
			State: "nothing was changed", Code: report.Unmet,
		}
	}
	return f, &report.UnmetError{Target: tx.req.Bundle.Target, All: unmet}
}

func (tx *Tx) checkFlavour(*preflight) ([]report.Requirement, error) {
	if tx.req.Replace {
		return nil, nil
	}
	want := tx.req.Bundle.Flavour
	if tx.previous != 0 {
		// A receipt that cannot be read says nothing; check and status report it.
		r, err := tx.e.readReceipt(tx.previous)
		if err == nil && r.Flavour != want && !slices.Contains(tx.req.Bundle.Supersedes, r.Flavour) {
			return []report.Requirement{{
				Name: "this Python holds another flavour of " + Package,
				Want: "none, or the flavour " + want, Got: fmt.Sprintf("%s (generation %d, target %s)", r.Flavour, r.Generation, r.Target),
				Hint: "undo that one: invar uninstall; replace it: invar build --replace; or choose another Python with --python",
			}}, nil
		}
	}
	if npu, ok := tx.req.Python.Lookup("torch-npu"); ok && want != "ascend" {
		return []report.Requirement{{
			Name: "this Python has torch_npu, and vllm-ascend would take the flavour " + want + " for its own",
			Want: "a Python without torch_npu, or an Ascend target", Got: "torch_npu " + npu.Version + " in " + npu.Dir,
			Hint: "choose another Python with --python, or, if this is meant: invar build --replace",
		}}, nil
	}
	return nil, nil
}

// checkHooks looks for the hook in every site directory: one that comes first
// wins, so that of another prefix has to go when this one is to work.
func (tx *Tx) checkHooks(f *preflight) ([]report.Requirement, error) {
	var unmet []report.Requirement
	want := tx.e.hookContent(tx.req.Startup)
	for _, dir := range tx.siteDirs() {
		path := filepath.Join(dir, HookName)
		mine := real(dir) == real(tx.req.Python.Purelib)
		content, state, prefix, err := tx.e.readHook(path)
		if err != nil {
			return nil, err
		}
		switch {
		case mine && state == HookOK && content == want:
		case mine && (state == HookMissing || state == HookOK || tx.free(state, content)):
			f.hook = &Moved{Kind: "hook", From: path, Was: content, Now: want, What: HookName}
		case state == HookMissing || state == HookOK || tx.free(state, content):
		case !tx.req.TakeOver:
			unmet = append(unmet, takenHook(path, content, state, prefix))
		case mine:
			f.hook = &Moved{Kind: "hook", From: path, Was: content, Now: want, What: HookName + " of " + prefix}
		default:
			f.aside = append(f.aside, Moved{Kind: "aside", From: path, What: HookName + " of " + prefix})
		}
		if mine {
			break // what comes later on the path loses against this one
		}
	}
	return unmet, nil
}

// free says that a hook of another prefix can be replaced without asking: it
// names a folder that is gone.
func (tx *Tx) free(state, content string) bool { return state == HookOther && dangling(content) }

// siteDirs are the site directories with Purelib among them, whatever the
// caller listed.
func (tx *Tx) siteDirs() []string {
	dirs := tx.req.Python.Paths
	for _, d := range dirs {
		if real(d) == real(tx.req.Python.Purelib) {
			return dirs
		}
	}
	return append(slices.Clone(dirs), tx.req.Python.Purelib)
}

func takenHook(path, content, state, prefix string) report.Requirement {
	if state == HookChanged {
		return report.Requirement{
			Name: "the hook in site-packages was changed by hand",
			Want: "one line that names a generation", Got: fmt.Sprintf("%s: %.80q", path, content),
			Hint: "remove the file, or replace it: invar build --take-over",
		}
	}
	got := path + " names " + prefix
	other := Prefix{Dir: prefix}
	if m := hookRE.FindStringSubmatch(content); m != nil {
		if r, err := other.Current(m[2]); err == nil {
			got += fmt.Sprintf(" (target %s, generation %d)", r.Target, r.Generation)
		}
	}
	return report.Requirement{
		Name: "another invar prefix serves this Python", Want: "one prefix for each Python", Got: got,
		Hint: "work on that one with --prefix " + run.Quote(prefix) + ", or take this Python from it: invar build --take-over",
	}
}

func (tx *Tx) checkForeign(f *preflight) ([]report.Requirement, error) {
	own := func(dir string) bool { return strings.HasPrefix(dir+"/", real(tx.e.dir)+"/") }
	var unmet []report.Requirement
	for _, c := range findForeign(rootfs.Root{}, tx.siteDirs(), tx.req.Python.Purelib, tx.req.Env, own) {
		switch {
		case !c.Wins:
		case !tx.req.Replace:
			unmet = append(unmet, report.Requirement{
				Name: "something else installed " + Package + ", and Python would import that",
				Want: "no " + Package + " but invar's", Got: fmt.Sprintf("%s at %s, by way of %s", c.What, c.Path, c.Via),
				Hint: "uninstall it, or move it aside: invar build --replace   (rollback and uninstall bring it back)",
			})
		case c.Stuck != "":
			unmet = append(unmet, report.Requirement{
				Name: "a copy of " + Package + " cannot be moved aside",
				Want: "no " + Package + " but invar's", Got: fmt.Sprintf("%s at %s", c.What, c.Path), Hint: c.Stuck,
			})
		default:
			for _, part := range c.Parts {
				f.aside = append(f.aside, Moved{Kind: "aside", From: part, What: c.What})
			}
		}
	}
	return unmet, nil
}

// checkAccess asks whether the places outside the prefix can be written.
func (tx *Tx) checkAccess(f *preflight) ([]report.Requirement, error) {
	var dirs []string
	if f.hook != nil {
		dirs = append(dirs, filepath.Dir(f.hook.From))
	}
	for _, m := range slices.Concat(f.aside, f.vendor) {
		if d := filepath.Dir(m.From); !slices.Contains(dirs, d) {
			dirs = append(dirs, d)
		}
	}
	var unmet []report.Requirement
	for _, d := range dirs {
		// Effective rights; a read-only mount and an immutable folder refuse root too.
		if err := unix.Faccessat(unix.AT_FDCWD, d, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
			unmet = append(unmet, report.Requirement{
				Name: "site-packages cannot be written",
				Want: "a folder that " + userName() + " can write", Got: fmt.Sprintf("%s: %v", d, err),
				Hint: "choose another Python with --python, make a virtual environment, or run as its owner",
			})
		}
	}
	return unmet, nil
}

func userName() string { return fmt.Sprintf("user %d", os.Geteuid()) }
