package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/store"
)

// A Vendor is linked into the operators of a CANN tree, for programs that run
// without invar's environment. The link goes through current, so that another
// generation needs no change there. Both changes are planned in the state
// before they are made: a killed run is put right by the next one.
type Vendor struct {
	Opp  string // CANN's opp folder
	Name string // vendor: opp/vendors/<Name>
}

const priorityKey = "load_priority"

func (v Vendor) link() string   { return filepath.Join(v.Opp, "vendors", v.Name) }
func (v Vendor) config() string { return filepath.Join(v.Opp, "vendors", "config.ini") }

// checkVendor plans the link and the line in config.ini, and refuses where
// something else has the vendor's name.
func (tx *Tx) checkVendor(f *preflight) ([]report.Requirement, error) {
	v := tx.req.Vendor
	if v == nil {
		return nil, nil
	}
	to := filepath.Join(tx.e.dir, "current", "ops", tx.req.Bundle.Target, "vendors", v.Name)
	now, err := os.Readlink(v.link())
	switch {
	case err == nil && now == to:
	case err != nil && errors.Is(err, fs.ErrNotExist), err == nil && !exists(now) && tx.req.TakeOver:
		f.vendor = append(f.vendor, Moved{Kind: "vendor", From: v.link(), Now: to, What: "vendor " + v.Name})
	case !tx.req.Replace:
		got := v.link() + " is a folder that something else installed"
		if err == nil {
			got = v.link() + " leads to " + now
		}
		return []report.Requirement{{
			Name: "CANN's tree has another vendor " + v.Name, Want: "no vendor of that name", Got: got,
			Hint: "pass --replace to move it aside (rollback and uninstall bring it back), or leave --into-cann out",
		}}, nil
	default:
		f.aside = append(f.aside, Moved{Kind: "aside", From: v.link(), What: "vendor " + v.Name})
		f.vendor = append(f.vendor, Moved{Kind: "vendor", From: v.link(), Now: to, What: "vendor " + v.Name})
	}
	was, err := os.ReadFile(v.config())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if text := withVendor(string(was), v.Name); text != string(was) {
		f.vendor = append(f.vendor, Moved{Kind: "priority", From: v.config(), Was: string(was), Now: text, What: v.Name})
	}
	return nil, nil
}

func (m Moved) linkVendor() error {
	if err := os.MkdirAll(filepath.Dir(m.From), 0o755); err != nil {
		return store.Explain(err, filepath.Dir(m.From))
	}
	if to, err := os.Readlink(m.From); err == nil && (to == m.Now || !exists(to)) {
		if to == m.Now {
			return nil
		}
		if err := os.Remove(m.From); err != nil {
			return store.Explain(err, filepath.Dir(m.From))
		}
	}
	if err := os.Symlink(m.Now, m.From); err != nil {
		return store.Explain(err, filepath.Dir(m.From))
	}
	return store.SyncDir(filepath.Dir(m.From))
}

// unlinkVendor removes the link if it is still ours.
func (m Moved) unlinkVendor() error {
	if to, err := os.Readlink(m.From); err != nil || to != m.Now {
		return nil //nolint:nilerr // gone, or another's by now
	}
	if err := os.Remove(m.From); err != nil {
		return store.Explain(err, filepath.Dir(m.From))
	}
	return store.SyncDir(filepath.Dir(m.From))
}

// setPriority writes config.ini anew from what is there at that moment. Mode
// 644: the installers' 640 hides it from other users.
func (m Moved) setPriority(e env) error {
	now, err := os.ReadFile(m.From)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return store.Explain(e.write(m.From, withVendor(string(now), m.What)), filepath.Dir(m.From))
}

// unsetPriority brings the old content back, or takes only our name out when
// somebody has changed the file since.
func (m Moved) unsetPriority(e env) error {
	_ = os.Remove(e.temp(m.From))
	b, err := os.ReadFile(m.From)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	text := m.Was
	if string(b) != m.Now {
		text = string(b)
		if !slices.Contains(priority(m.Was), m.What) {
			text = withoutVendor(text, m.What)
		}
	}
	if text == "" || m.Was == "" && len(priority(text)) == 0 && strings.TrimSpace(text) == priorityKey+"=" {
		if err := os.Remove(m.From); err != nil {
			return store.Explain(err, filepath.Dir(m.From))
		}
		return store.SyncDir(filepath.Dir(m.From))
	}
	return store.Explain(e.write(m.From, text), filepath.Dir(m.From))
}

// priority lists the vendors of a config.ini. The loader takes the first line
// of that key, and no blanks or carriage returns around names: we read them
// and never write them.
func priority(text string) []string {
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, "=")
		if !ok || strings.TrimSpace(key) != priorityKey {
			continue
		}
		var out []string
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name != "" && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
		return out
	}
	return nil
}

// withVendor is text with the vendor first in load_priority.
func withVendor(text, vendor string) string {
	names := append([]string{vendor}, slices.DeleteFunc(priority(text), func(n string) bool { return n == vendor })...)
	return withPriority(text, names)
}

func withoutVendor(text, vendor string) string {
	return withPriority(text, slices.DeleteFunc(priority(text), func(n string) bool { return n == vendor }))
}

// withPriority replaces the first line of the key and keeps the others, with
// line ends that the loader understands.
func withPriority(text string, names []string) string {
	var b strings.Builder
	line := fmt.Sprintf("%s=%s\n", priorityKey, strings.Join(names, ","))
	done := false
	for l := range strings.Lines(text) {
		key, _, ok := strings.Cut(l, "=")
		switch {
		case ok && strings.TrimSpace(key) == priorityKey && !done:
			b.WriteString(line)
			done = true
		case ok && strings.TrimSpace(key) == priorityKey:
		default:
			b.WriteString(strings.TrimRight(l, "\r\n") + "\n")
		}
	}
	if !done {
		b.WriteString(line)
	}
	return b.String()
}
