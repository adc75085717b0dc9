package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/run"
)

// A Fault is one way in which an installation differs from its receipt.
type Fault struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // "missing", "changed", "hook", "shadowed", "receipt", "unfinished"
	Want string `json:"want"`
	Got  string `json:"got"`
	Hint string `json:"hint,omitempty"`
}

func (f Fault) String() string {
	return fmt.Sprintf("%s: %s (want %s, got %s)", f.Path, f.Kind, f.Want, f.Got)
}

// A Health is what a look at the files of an installation says.
type Health struct {
	OK     bool     `json:"ok"`
	Faults []Fault  `json:"faults,omitempty"`
	Extra  []string `json:"extra,omitempty"` // files that the receipt does not know; not a fault
	Hook   string   `json:"hook"`            // HookOK, ...
}

const hintAgain = "install it again: invar build"

// Check compares the installation that r describes with the files: every file
// is there with its digest, the hook names it, it is the current generation,
// and nothing on the path of its Python comes first. It starts no Python.
func Check(ctx context.Context, r Receipt, environ []string) (Health, error) {
	return CheckIn(ctx, rootfs.Root{}, r, environ)
}

// CheckSeen is Check that reads only files that look otherwise (size, times,
// inode) than when it last read their content, and remembers how they look.
func CheckSeen(ctx context.Context, r Receipt, environ []string) (Health, error) {
	return check(ctx, rootfs.Root{}, r, environ, true)
}

// CheckIn is Check for an installation inside root. Links are followed inside
// the root and never out of it.
func CheckIn(ctx context.Context, root rootfs.Root, r Receipt, environ []string) (Health, error) {
	return check(ctx, root, r, environ, false)
}

func check(ctx context.Context, root rootfs.Root, r Receipt, environ []string, trust bool) (Health, error) {
	e := (&Prefix{Dir: r.Prefix, root: root}).env(r.Python.ID)
	var h Health
	cur, err := e.current()
	if err != nil {
		return h, err
	}
	if cur != r.Generation {
		h.add(Fault{e.currentLink(), "receipt", fmt.Sprintf("gen/%d", r.Generation), fmt.Sprintf("gen/%d", cur), "another run changed it; look again"})
	}
	if err := h.files(ctx, e, r, trust); err != nil {
		return h, err
	}
	if err := h.outside(e, r, environ); err != nil {
		return h, err
	}
	h.OK = len(h.Faults) == 0
	h.name(r)
	return h, nil
}

// name puts target and Python into the commands of the hints.
func (h *Health) name(r Receipt) {
	build := "invar build " + r.Target
	if r.Python.Exe != "" {
		build += " --python " + run.Quote(r.Python.Exe)
	}
	for i := range h.Faults {
		h.Faults[i].Hint = strings.Replace(h.Faults[i].Hint, "invar build", build, 1)
	}
}

func (h *Health) add(f Fault) { h.Faults = append(h.Faults, f) }

func (h *Health) files(ctx context.Context, e env, r Receipt, trust bool) error {
	dir := e.gen(r.Generation)
	host, err := e.root.Host(dir)
	if err != nil {
		return err
	}
	got, _, err := listFiles(host)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	here := map[string]*File{}
	for i := range got {
		here[got[i].Path] = &got[i]
	}
	var read []File
	for _, want := range r.Files {
		f, ok := here[want.Path]
		switch {
		case !ok:
			h.add(Fault{filepath.Join(dir, want.Path), "missing", "a file", "none", hintAgain})
		case want.Link != f.Link:
			h.add(Fault{filepath.Join(dir, want.Path), "changed", "link " + want.Link, "link " + f.Link, hintAgain})
		case f.Link == "" && !regular(filepath.Join(host, want.Path)): // reading a pipe would never end
			h.add(Fault{filepath.Join(dir, want.Path), "changed", "a file", "a pipe, a device or a socket", hintAgain})
		default:
			read = append(read, *f)
		}
		delete(here, want.Path)
	}
	var known map[string]look
	if trust {
		known = readLooks(host)
	}
	done, toRead, before := seen(host, read, known)
	if err := digests(ctx, host, toRead, false); err != nil {
		return err
	}
	if trust {
		remember(host, known, toRead, before)
	}
	h.compare(dir, r.Files, append(done, toRead...))
	for p := range here {
		if !derived(p, r.Files) {
			h.Extra = append(h.Extra, filepath.Join(dir, p))
		}
	}
	slices.Sort(h.Extra)
	return nil
}

func regular(path string) bool {
	st, err := os.Lstat(path)
	return err == nil && st.Mode().IsRegular()
}

func (h *Health) compare(dir string, want, got []File) {
	byPath := map[string]File{}
	for _, f := range want {
		byPath[f.Path] = f
	}
	for _, f := range got {
		if w := byPath[f.Path]; w.SHA256 != f.SHA256 || w.Size != f.Size {
			h.add(Fault{
				filepath.Join(dir, f.Path), "changed",
				fmt.Sprintf("%d bytes, sha256 %.12s", w.Size, w.SHA256), fmt.Sprintf("%d bytes, sha256 %.12s", f.Size, f.SHA256), hintAgain,
			})
		}
	}
}

// derived reports whether a file comes from an installed one: what invar
// itself keeps in a generation, and Python's caches of installed sources.
func derived(path string, files []File) bool {
	if path == "receipt.json" || path == "probe.json" || path == looksName {
		return true
	}
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	if filepath.Base(dir) != "__pycache__" || !strings.Contains(name, ".pyc") {
		return false
	}
	stem, _, _ := strings.Cut(name, ".")
	source := filepath.Join(filepath.Dir(dir), stem+".py")
	return slices.ContainsFunc(files, func(f File) bool { return f.Path == source })
}

// unfinished reports whether something that was to be moved, or to come back,
// has not yet. The hook shows that by its content.
func (m Moved) unfinished(e env, current int) bool {
	there := func(p string) bool {
		_, err := e.root.Lstat(p)
		return err == nil
	}
	switch {
	case m.Kind != "aside":
		return false
	case m.Generation > current:
		return there(filepath.Join(e.dir, m.To))
	}
	return !m.Done && there(m.From)
}

// outside looks at what lies outside the prefix.
func (h *Health) outside(e env, r Receipt, environ []string) error {
	content, state, prefix, err := e.readHook(r.Hook.Path)
	if err != nil {
		return err
	}
	h.Hook = state
	switch state {
	case HookMissing:
		h.add(Fault{r.Hook.Path, "hook", strings.TrimSpace(r.Hook.Content), "no file", hintAgain})
	case HookOther:
		h.add(Fault{r.Hook.Path, "hook", strings.TrimSpace(r.Hook.Content), "the hook of " + prefix, "take it back: invar build --take-over"})
	case HookChanged:
		h.add(Fault{r.Hook.Path, "hook", strings.TrimSpace(r.Hook.Content), fmt.Sprintf("%.80q", content), "remove the file, then: invar build"})
	}
	own := func(dir string) bool { return strings.HasPrefix(dir+"/", e.root.Real(e.dir)+"/") }
	for _, f := range findForeign(e.root, r.Python.Paths, r.Python.Purelib, environ, own) {
		if f.Wins {
			h.add(Fault{f.Path, "shadowed", "invar's " + Package + " first on sys.path", f.What + " by way of " + f.Via, "uninstall it, or move it aside: invar build --replace"})
		}
	}
	s, err := e.readState()
	if err != nil {
		return err
	}
	for _, m := range s.Moved {
		if m.unfinished(e, r.Generation) {
			h.add(Fault{m.From, "unfinished", "changes outside the prefix complete", "a killed run left them half done", "any invar build, rollback or uninstall finishes them"})
		}
	}
	_, err = e.root.Stat(r.Python.Purelib)
	if errors.Is(err, fs.ErrNotExist) {
		h.add(Fault{r.Python.Purelib, "missing", "the site-packages of " + r.Python.Exe, "no such folder", "the Python is gone; invar uninstall removes what is left"})
	}
	return nil
}
