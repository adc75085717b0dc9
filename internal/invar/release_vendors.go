package invar

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/opp"
	"github.com/invar-ops/invar/internal/released"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/vllmascend"
)

// All vendors of CANN call their library by one name, and a caller takes, name
// by name, the first that it comes to. Here that order is worked out before
// anything is installed, for each kind of process that will look.

// A lookup is the order of one kind of process.
type lookup struct {
	who string
	env opp.Env
}

// lookups are the processes that call the operators of the vendor in dir: one
// that a Python with invar's hook or invar exec started; the same after
// vllm-ascend has put its own vendor first; a worker, which inherits that and
// goes through the hook once more.
func (b *release) lookups(dir string) []lookup {
	start := opp.FromEnviron(b.env).First(dir)
	out := []lookup{{"programs", start}}
	own := b.vllmVendor()
	if own == "" {
		return out
	}
	parent := start.Prepend(own)
	return append(out, lookup{"vllm-ascend", parent}, lookup{"workers of vllm-ascend", parent.First(dir).Prepend(own)})
}

// vllmVendor is the vendor of the vllm-ascend in this Python, or of the tree
// that goes with it.
func (b *release) vllmVendor() string {
	if v := vllmascend.Vendor(vllmascend.Package(b.p.Python)); v != "" {
		return v
	}
	if tree := firstOf(b.o.Release.InstallVLLM, b.o.Release.VLLMTree); tree != "" && b.o.Release.Editable {
		return vllmascend.Vendor(filepath.Join(tree, "vllm_ascend"))
	}
	return ""
}

// contest refuses an installation whose operators another vendor would serve
// in spite of everything, and says which vendors it goes before. dir is the
// vendor's folder, functions are those that will be called.
func (b *release) contest(dir string, functions []string, say bool) error {
	names := make([]string, 0, 2*len(functions))
	for _, f := range functions {
		names = append(names, opp.Pair(f)...)
	}
	own := filepath.Join(dir, opp.Library)
	if real, err := filepath.EvalSymlinks(own); err == nil {
		own = real // as candidates have it
	}
	var lost []report.Requirement
	told := map[string]bool{}
	for _, l := range b.lookups(dir) {
		candidates := l.env.Candidates()
		if !slices.ContainsFunc(candidates, func(c opp.Candidate) bool { return c.Path == own && c.Usable() }) {
			return nil // level 1 of the probe says why the loader does not take it
		}
		for _, r := range opp.Rivals(candidates, own, names) {
			if len(r.Wins) > 0 && !told[r.Library] {
				told[r.Library] = true
				lost = append(lost, lostTo(l.who, r))
			} else if say && len(r.Loses) > 0 && !told[r.Library] {
				told[r.Library] = true
				b.Progress.Note(fmt.Sprintf("vendors   this one goes before %s (%s), which has %s, too: the hook, invar exec and invar env put it first", r.Library, r.Via, brief(r.Loses)))
			}
		}
	}
	if len(lost) > 0 {
		return &report.UnmetError{Target: b.p.Target, All: lost}
	}
	return nil
}

func lostTo(who string, r opp.Rival) report.Requirement {
	return report.Requirement{
		Name: "vendor that serves " + who, Want: "every function of the operators from the vendor that is installed here",
		Got:  brief(r.Wins) + " from " + r.Library + ", which comes first (" + r.Via + ")",
		Hint: "vllm-ascend puts its own vendor first when it starts, and nothing can come before it: install a vllm-ascend whose own package has not these functions, or leave the operators to it",
		// The same rules for all callers, worked out on the files as they are.
		Source: "lookup order of torch_npu and vllm-ascend",
	}
}

// brief names the functions of a list, without the second name of each.
func brief(names []string) string {
	var out []string
	for _, n := range names {
		if f := strings.TrimSuffix(n, opp.GetWorkspaceSize); !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	if len(out) > 4 {
		return fmt.Sprintf("%s and %d more", strings.Join(out[:4], ", "), len(out)-4)
	}
	return strings.Join(out, ", ")
}

// contestKnown asks for the functions that the target is known to call, before
// the transaction begins.
func (b *release) contestKnown(ops operators) error {
	t, err := target.Find(b.p.Target)
	if err != nil {
		return err
	}
	b.passedOver(ops.pkg.VendorDir())
	return b.contest(ops.pkg.VendorDir(), released.Functions(t, b.r.Version), true)
}

// passedOver says which vendors of this environment the lookup does not take,
// and why: torch_npu does so without a word.
func (b *release) passedOver(dir string) {
	env := opp.FromEnviron(b.env).First(dir)
	for _, c := range env.Candidates() {
		if c.Vendor != dir && c.Via != "CANN" && !c.Usable() {
			b.Progress.Note(fmt.Sprintf("vendors   %q of %s is passed over: %s", c.Vendor, c.Via, c.Problem))
		}
	}
	for _, d := range env.Doubts() {
		b.Progress.Note("vendors   config.ini of CANN: " + d)
	}
}

// contestCalled asks once more for those that the built wheel really looks up,
// before anything is switched.
func (b *release) contestCalled(ctx context.Context, vendor, site string) error {
	var called []string
	err := filepath.WalkDir(site, func(p string, d fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil || d.IsDir() || filepath.Ext(p) != ".so" {
			return err
		}
		names, err := opp.Called(p)
		called = append(called, names...)
		return err
	})
	if err != nil || len(called) == 0 {
		return err
	}
	return b.contest(vendor, called, false)
}
