// Package opp knows by which rules CANN's callers find the library of an
// operator: torch_npu's macro and vllm-ascend's header alike look each aclnn
// name up in the vendors of ASCEND_CUSTOM_OPP_PATH, then in those of config.ini,
// then in CANN itself, and take the first library that has it. It reads ELF
// files and loads none.
package opp

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/invar-ops/invar/internal/elffile"
	"github.com/invar-ops/invar/internal/rootfs"
	"github.com/invar-ops/invar/internal/run"
)

// Library is what a vendor's folder must hold, and all that is looked for there.
const Library = "op_api/lib/libcust_opapi.so"

// Builtin is the library of CANN's own operators, found by its plain name.
const Builtin = "libopapi.so"

// An Env is what the lookup depends on.
type Env struct {
	Custom      string // ASCEND_CUSTOM_OPP_PATH
	Opp         string // ASCEND_OPP_PATH
	LibraryPath string // LD_LIBRARY_PATH when the process starts; a later change counts for nothing
	Dir         string // working directory, for relative entries; empty is this process's
	UID         int    // user of the process: torch_npu passes over files of others

	Root rootfs.Root // of the machine or image that these paths are in
	Arch string      // of the process, as uname -m; empty is this machine's
}

// FromEnviron takes the Env of a process of this user with these variables.
func FromEnviron(env []string) Env {
	return Env{
		Custom: run.Getenv(env, "ASCEND_CUSTOM_OPP_PATH"), Opp: run.Getenv(env, "ASCEND_OPP_PATH"),
		LibraryPath: run.Getenv(env, "LD_LIBRARY_PATH"), UID: os.Getuid(),
	}
}

// Prepend is e in a process that has put a vendor's folder first, as vllm-ascend
// does with its own when it starts. A folder that is in the list already stays
// where it is.
func (e Env) Prepend(vendor string) Env {
	entries := e.entries()
	if slices.Contains(entries, vendor) {
		return e
	}
	e.Custom = strings.Join(append([]string{vendor}, entries...), ":")
	return e
}

// First is e with a vendor's folder in front, wherever it stood: what invar's
// hook does whenever a Python starts.
func (e Env) First(vendor string) Env {
	entries := slices.DeleteFunc(e.entries(), func(s string) bool { return s == vendor })
	e.Custom = strings.Join(append([]string{vendor}, entries...), ":")
	return e
}

func (e Env) entries() []string {
	return slices.DeleteFunc(strings.Split(e.Custom, ":"), func(s string) bool { return s == "" })
}

// A Candidate is one library in the order of the lookup.
type Candidate struct {
	Path    string `json:"path"`              // of the library, links resolved
	Via     string `json:"via"`               // "ASCEND_CUSTOM_OPP_PATH", "config.ini" or "CANN"
	Vendor  string `json:"vendor"`            // folder or name as it is written there
	Problem string `json:"problem,omitempty"` // why it is passed over without a word

	file *elffile.File
}

// Usable reports whether the lookup opens the library.
func (c Candidate) Usable() bool { return c.Problem == "" }

// Exports reports whether the library, or one that it needs, may give name: the
// lookup asks for a symbol of the library itself.
func (c Candidate) Exports(name string) bool { return c.file != nil && c.file.Exported(name) }

// Names lists what the library exports.
func (c Candidate) Names() []string {
	if c.file == nil {
		return nil
	}
	out := make([]string, 0, len(c.file.Exports))
	for _, s := range c.file.Exports {
		out = append(out, s.Name)
	}
	return out
}

// Candidates lists the libraries in the order in which a symbol is looked for.
func (e Env) Candidates() []Candidate {
	var out []Candidate
	if e.Custom != "" {
		for entry := range strings.SplitSeq(e.Custom, ":") {
			out = append(out, e.custom(entry))
		}
	}
	if e.Opp != "" {
		out = append(out, e.listed()...)
	}
	return append(out, e.builtin())
}

func (e Env) custom(entry string) Candidate {
	c := Candidate{Via: "ASCEND_CUSTOM_OPP_PATH", Vendor: entry}
	dir := entry
	switch {
	case entry == "":
		c.Problem = "an empty entry is the folder /op_api/lib"
		dir = "/"
	case !filepath.IsAbs(entry):
		dir = filepath.Join(e.Dir, entry)
	}
	found := e.open(c, dir)
	if e.Root.Exists(filepath.Join(dir, "config.ini")) && found.file == nil {
		found.Problem = "it is the folder of all vendors; it must name one of them: " + filepath.Join(entry, "VENDOR")
	}
	return found
}

// listed are the vendors of config.ini.
func (e Env) listed() []Candidate {
	vendors := filepath.Join(e.Opp, "vendors")
	b, err := e.Root.ReadFile(filepath.Join(vendors, "config.ini"))
	if err != nil {
		return nil
	}
	var out []Candidate
	for _, name := range ParseConfig(string(b)).Names {
		c := Candidate{Via: "config.ini", Vendor: name}
		if name == "" {
			continue // an empty name is no folder: nothing is looked at
		}
		if trimmed := strings.TrimSpace(name); trimmed != name {
			if e.Root.Exists(filepath.Join(vendors, trimmed)) {
				c.Problem = fmt.Sprintf("blanks and carriage returns belong to the name: %q is not %q", name, trimmed)
				out = append(out, c)
				continue
			}
		}
		out = append(out, e.open(c, filepath.Join(vendors, name)))
	}
	return out
}

// Doubts are what a person would read otherwise in config.ini than the lookup
// does: vendors that are meant to be there and are not come from that.
func (e Env) Doubts() []string {
	b, err := os.ReadFile(filepath.Join(e.Opp, "vendors", "config.ini"))
	if e.Opp == "" || err != nil {
		return nil
	}
	return ParseConfig(string(b)).Doubts
}

// open reads the library of the vendor in dir and says whether dlopen takes it.
func (e Env) open(c Candidate, dir string) Candidate {
	path := filepath.Join(dir, Library)
	c.Path = path
	if _, err := e.Root.Stat(path); err == nil {
		c.Path = e.Root.Real(path)
	} else if c.Problem == "" {
		c.Problem = e.plain(err, path)
	}
	if c.Problem != "" {
		return c
	}
	c.file, c.Problem = e.loadable(c.Path)
	return c
}

func (e Env) plain(err error, path string) string {
	if _, statErr := e.Root.Lstat(path); statErr == nil {
		return "a link that leads nowhere"
	}
	if pe, ok := err.(*fs.PathError); ok { //nolint:errorlint // the innermost name is what helps
		return pe.Path + ": " + pe.Err.Error()
	}
	return err.Error()
}

// loadable says why dlopen, or torch_npu's own check before it, refuses path.
func (e Env) loadable(path string) (*elffile.File, string) {
	host, err := e.Root.Host(path)
	if err != nil {
		return nil, err.Error()
	}
	f, err := elffile.Read(host)
	if err != nil {
		return nil, err.Error()
	}
	f.Path = path
	arch := e.Arch
	if arch == "" {
		arch = hostArch()
	}
	if f.Arch != arch {
		return nil, "it is for " + f.Arch + ", this is " + arch
	}
	for _, l := range elffile.NewLoader(e.Root.Dir(), e.LibraryPath).Tree(f) {
		if l.Path == "" {
			text := l.Name + ", which " + l.From + " needs, is not found by LD_LIBRARY_PATH"
			if l.Reason != "" {
				text += " (" + l.Reason + ")"
			}
			return nil, text
		}
	}
	info, err := os.Stat(host)
	if err != nil {
		return nil, err.Error()
	}
	if s, ok := info.Sys().(*syscall.Stat_t); ok && int(s.Uid) != e.UID && s.Uid != 0 {
		return nil, fmt.Sprintf("its owner is user %d and the process is of user %d: torch_npu passes over it", s.Uid, e.UID)
	}
	return f, ""
}

// builtin finds CANN's own library as dlopen does with a plain name.
func (e Env) builtin() Candidate {
	c := Candidate{Via: "CANN", Vendor: Builtin}
	for dir := range strings.SplitSeq(e.LibraryPath, ":") {
		path := filepath.Join(dir, Builtin)
		if dir == "" {
			continue
		}
		if !e.Root.Exists(path) {
			continue
		}
		c.Path = path
		c.file, c.Problem = e.loadable(path)
		if c.file != nil {
			return c
		}
	}
	if c.Problem == "" {
		c.Problem = "not in a folder of LD_LIBRARY_PATH: source set_env.sh"
	}
	return c
}
