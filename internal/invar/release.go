package invar

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/invar-ops/invar/internal/cannenv"
	"github.com/invar-ops/invar/internal/extwheel"
	"github.com/invar-ops/invar/internal/fetch"
	"github.com/invar-ops/invar/internal/host/chip"
	"github.com/invar-ops/invar/internal/opsource"
	"github.com/invar-ops/invar/internal/pins"
	"github.com/invar-ops/invar/internal/plan"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
	"github.com/invar-ops/invar/internal/target"
)

// ReleaseOptions are the user's choices for targets whose operators a vendor releases.
type ReleaseOptions struct {
	OpsVersion  string   // of the released operators
	RunPackage  string   // file, folder or address instead of the published one
	OpsSource   string   // operator source tree instead of a run package
	Ops         []string // operators to build from it
	ThirdParty  string   // folder with the archives that its build would fetch
	Extension   string   // sources of the wheel: zip, tree, folder or address
	Mirrors     []string
	Accept      []string // digests, hex
	Lock        string   // lock file; empty finds it
	CAFiles     []string
	CANN        string // folder
	Installer   string // "script" or "copy"
	Repair      bool
	Skew        bool
	IntoCANN    bool
	InstallVLLM string // source tree of vllm-ascend to install with the operators
	Editable    bool
	VLLMTree    string // source tree of the vllm-ascend that is installed
}

// given names an option that only such targets have, "" when none was given.
func (r ReleaseOptions) given() string {
	for _, o := range []struct {
		name string
		set  bool
	}{
		{"--ops-version", r.OpsVersion != ""},
		{"--run-package", r.RunPackage != ""},
		{"--ops-source", r.OpsSource != ""},
		{"--extension", r.Extension != ""},
		{"--accept-digest", len(r.Accept) > 0},
		{"--into-cann", r.IntoCANN},
		{"--repair", r.Repair},
		{"--install-vllm-ascend", r.InstallVLLM != ""},
		{"--vllm-ascend", r.VLLMTree != ""},
	} {
		if o.set {
			return o.name
		}
	}
	return ""
}

// trust is the content that may be used for the target called name.
func (s Session) trust(name string, o ReleaseOptions) (pins.Trust, string, error) {
	src, _, err := pins.Of(name)
	if err != nil {
		return pins.Trust{}, "", err
	}
	file := s.lockFile(o.Lock)
	lock, err := pins.ReadLock(file)
	return pins.Trust{Sources: src, Lock: lock, Accepted: o.Accept}, file, err
}

// lockFile is the one that was named, the one in this folder, or the prefix's own.
func (s Session) lockFile(named string) string {
	if named != "" {
		return named
	}
	if abs, err := filepath.Abs(pins.LockName); err == nil {
		if _, err := os.Stat(abs); err == nil {
			return abs
		}
	}
	return filepath.Join(s.Prefix, pins.LockName)
}

// gatherRelease finds CANN and says where both artifacts of t come from. It
// fetches nothing and starts nothing.
func (s Session) gatherRelease(ctx context.Context, t target.Target, f *plan.Facts, o Options) error {
	ro := o.Release
	src, ok, err := pins.Of(t.Name)
	if err != nil {
		return err
	}
	if !ok {
		if flag := ro.given(); flag != "" {
			return report.Usagef("%s: the operators of %s are compiled from invar's own sources", flag, t.Name)
		}
		return nil
	}
	r := &plan.Release{Kernels: src.Kernels, Vendors: src.Vendors, Installer: ro.Installer, Repair: ro.Repair, Skew: ro.Skew, IntoCANN: ro.IntoCANN}
	if r.CANN, err = cannenv.Choose("/", ro.CANN, s.Env); err != nil {
		return err
	}
	if r.SoC, err = s.soc(t, o.SoC); err != nil {
		return err
	}
	trust, lock, err := s.trust(t.Name, ro)
	if err != nil {
		return err
	}
	r.Lock = lock
	if ro.OpsVersion == "" {
		if ro.OpsVersion, err = s.opsOfTree(ctx, f.Python, ro); err != nil {
			return err
		}
	}
	if v := s.vllm; v != nil {
		r.VLLM = fmt.Sprintf("%s sha256:%s editable %v", v.Dir, v.Digest, v.Editable)
	}
	w := origins{s: s, ctx: ctx, trust: trust, arch: f.Arch, o: ro}
	if r.Ops, err = w.ops(); err != nil {
		return err
	}
	r.Version = w.version(r.Ops.Name)
	if r.Extension, err = w.extension(r.Version, r.Ops); err != nil {
		return err
	}
	f.Release = r
	return nil
}

// soc is SOC_VERSION as every child gets it: lower case, of this target. A
// value of another target stops the build: its script would go on without a word.
func (s Session) soc(t target.Target, flag string) (string, error) {
	name, value := "--soc", flag
	if value == "" {
		name, value = "SOC_VERSION", run.Getenv(s.Env, "SOC_VERSION")
	}
	if value == "" {
		return "", nil
	}
	rules, err := chip.Load()
	if err != nil {
		return "", err
	}
	m, ok, note := rules.Value(value)
	fam, _ := rules.Family(m.Family)
	if !ok || fam.Target != t.Name {
		if note == "" {
			note = "it is of " + firstOf(fam.Target, "no known target")
		}
		return "", report.Problemf(report.Unmet, "%s=%s does not belong to %s", name, value, t.Name).
			WithWant("a chip of "+t.Title, note).WithHint("unset %s, or build the target that it names", name)
	}
	return firstOf(m.SoC, m.Assumed), nil
}

// origins finds out where files come from.
type origins struct {
	s     Session
	ctx   context.Context //nolint:containedctx // one call long
	trust pins.Trust
	arch  string
	o     ReleaseOptions
}

var versionRE = regexp.MustCompile(`-(\d+(?:\.\w+)+)-linux\.`)

// version is that of the operators: as asked for, as the package is called, or the default.
func (w origins) version(name string) string {
	if w.o.OpsVersion != "" {
		return w.o.OpsVersion
	}
	if m := versionRE.FindStringSubmatch(name); m != nil {
		return m[1]
	}
	return w.trust.Sources.Default
}

func (w origins) ops() (plan.Origin, error) {
	src, given := w.trust.Sources, w.o.RunPackage
	if w.o.OpsSource != "" {
		if given != "" {
			return plan.Origin{}, report.Usagef("--run-package and --ops-source exclude each other")
		}
		sum, err := opsource.Digest(w.ctx, w.o.OpsSource)
		return plan.Origin{Name: filepath.Base(w.o.OpsSource), Tree: w.o.OpsSource, Digest: sum, Ops: w.o.Ops}, err
	}
	name := src.PackageName(w.version(path.Base(given)), w.arch)
	return w.file("--run-package", given, name, src.PackageName("*", w.arch))
}

// extension is the zip of the release, or a tree that the user names. A zip
// beside a local run package is taken before any other.
func (w origins) extension(version string, ops plan.Origin) (plan.Origin, error) {
	name, given := w.trust.Sources.ExtensionName(version), w.o.Extension
	if st, err := os.Stat(given); given != "" && err == nil && st.IsDir() {
		if _, err := os.Stat(filepath.Join(given, name)); err != nil {
			sum, err := extwheel.Digest(w.ctx, given)
			return plan.Origin{Name: filepath.Base(given), Tree: given, Digest: sum}, err
		}
	}
	if given == "" && len(ops.URLs) == 1 && filepath.IsAbs(ops.URLs[0]) {
		if beside := filepath.Join(filepath.Dir(ops.URLs[0]), name); isFile(beside) {
			given = beside
		}
	}
	return w.file("--extension", given, name, w.trust.Sources.ExtensionName("*"))
}

func isFile(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.Mode().IsRegular()
}

// file is one released file: what the user named, or name where it is published.
func (w origins) file(flag, given, name, pattern string) (plan.Origin, error) {
	switch {
	case given == "":
		return w.published(name), nil
	case strings.Contains(given, "://") && !strings.HasPrefix(given, "file://"):
		u, err := url.Parse(given)
		if err != nil || path.Base(u.Path) == "/" || path.Base(u.Path) == "." {
			return plan.Origin{}, report.Usagef("%s %s names no file", flag, given)
		}
		o := w.origin(path.Base(u.Path), given)
		return o, nil
	}
	given = strings.TrimPrefix(given, "file://")
	st, err := os.Stat(given)
	if err != nil {
		return plan.Origin{}, report.Usagef("%s: %w", flag, err).WithHint("name a file, a folder that holds %s, or an address", name)
	}
	if st.IsDir() {
		if given, err = inFolder(given, name, pattern); err != nil {
			return plan.Origin{}, err
		}
	}
	sum, err := fetch.Known(w.ctx, w.s.Cache(), given)
	if err != nil {
		return plan.Origin{}, err
	}
	return plan.Origin{Name: filepath.Base(given), URLs: []string{given}, Pins: []string{sum}}, nil
}

func (w origins) origin(name string, urls ...string) plan.Origin {
	o := plan.Origin{Name: name, URLs: urls, Pins: w.trust.Pins(name)}
	o.Size = w.trust.Size(name, o.Pins)
	return o
}

func (w origins) published(name string) plan.Origin {
	return w.origin(name, w.trust.Sources.URLs(name)...)
}

// inFolder finds the file called name in dir, or the only one of its kind.
func inFolder(dir, name, pattern string) (string, error) {
	if p := filepath.Join(dir, name); isFile(p) {
		return p, nil
	}
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) == 1 {
		return strings.Join(found, ""), err
	}
	got := "none"
	if len(found) > 1 {
		got = strings.Join(found, ", ")
	}
	return "", report.Problemf(report.Unmet, "%s does not hold one file for this host", dir).
		WithWant(name, got).WithHint("name the file itself, or its version: --ops-version")
}

// Cache is the folder of downloads, shared by every prefix of this user.
func (s Session) Cache() string { return fetch.CacheDir(s.Env, s.Prefix) }
