package probe

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/elffile"
	"github.com/invar-ops/invar/internal/pins"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/version"
)

// kernelConfig is one file in kernel/config/<soc>: which binaries an operator has.
type kernelConfig struct {
	BinList []struct {
		BinInfo struct {
			JSONFilePath string `json:"jsonFilePath"`
		} `json:"binInfo"`
	} `json:"binList"`
}

// npuKernels is level 5: kernels for this SoC, each configuration with its
// objects, no known defect left, and compiled with the CANN that is here.
func (p *prober) npuKernels() ([]report.Check, error) {
	s, ok, err := pins.Of(p.receipt.Target)
	if err != nil || !ok {
		return nil, err
	}
	dir := filepath.Join(p.receipt.VendorDir(), "op_impl", "ai_core", "tbe", "kernel")
	return []report.Check{p.kernelsFor(dir, s.Kernels), p.defects(s), p.compiledWith()}, nil
}

func (p *prober) kernelsFor(dir string, socs []string) report.Check {
	want := "configurations and objects for " + strings.Join(socs, " or ")
	i := slices.IndexFunc(socs, func(s string) bool { return p.Root.Exists(filepath.Join(dir, "config", s)) })
	if i < 0 {
		have := p.Root.Glob(filepath.Join(dir, "config", "*"))
		for n := range have {
			have[n] = filepath.Base(have[n])
		}
		c := check(Kernels, "kernels", false, want, "for "+firstNonEmpty(strings.Join(have, ", "), "no SoC"))
		c.Hint = "the run package is for another SoC; torch_npu does not check that, and the operators fail when they run"
		return c
	}
	configs := p.Root.Glob(filepath.Join(dir, "config", socs[i], "*.json"))
	var wrong []string
	objects := 0
	for _, path := range configs {
		n, text := p.readKernels(dir, path)
		objects += n
		if text != "" {
			wrong = append(wrong, p.within(path)+": "+text)
		}
	}
	if len(configs) == 0 {
		wrong = append(wrong, "no configuration in "+p.within(filepath.Join(dir, "config", socs[i])))
	}
	c := check(Kernels, "kernels", len(wrong) == 0, want, firstNonEmpty(strings.Join(wrong, "\n"), fmt.Sprintf("%s with %s for %s", count(len(configs), "configuration"), count(objects, "object"), socs[i])))
	c.Hint = hintUnless(c, "the package is incomplete: install it again, or take another version")
	return c
}

// readKernels counts the objects that a configuration names and says what is
// wrong with one. Objects are ELF files for a machine that is no CPU.
func (p *prober) readKernels(dir, path string) (int, string) {
	b, err := p.Root.ReadFile(path)
	if err != nil {
		return 0, err.Error()
	}
	var c kernelConfig
	if err := json.Unmarshal(b, &c); err != nil {
		return 0, err.Error()
	}
	if strings.HasPrefix(filepath.Base(path), "binary_info_config") {
		return 0, "" // an index of the others
	}
	if len(c.BinList) == 0 {
		return 0, "it names no binary"
	}
	for n, bin := range c.BinList {
		rel := filepath.FromSlash(bin.BinInfo.JSONFilePath)
		if !filepath.IsLocal(rel) {
			return n, fmt.Sprintf("%q leads out of the package", rel)
		}
		object := strings.TrimSuffix(filepath.Join(dir, rel), ".json") + ".o"
		switch f, err := p.Root.Open(object); {
		case err != nil:
			return n, "no " + filepath.Base(object)
		default:
			_, err := elffile.ReadFrom(f)
			_ = f.Close()
			if err != nil {
				return n, filepath.Base(object) + ": " + err.Error()
			}
		}
	}
	return len(c.BinList), ""
}

// defects looks for what is known to be wrong with this release and was not put
// right when it was built.
func (p *prober) defects(s pins.Sources) report.Check {
	const name, want = "known defects", "none of this release, or put right"
	r := p.receipt.Release
	var left []string
	for _, k := range s.RepairsOf(r.Version) {
		at := strings.NewReplacer("{vendor}", r.Vendor).Replace(k.Link)
		root := filepath.Dir(filepath.Dir(p.receipt.VendorDir()))
		if !p.there(filepath.Join(root, at)) && p.repairable(root, at, k.To) {
			left = append(left, at+" is missing: "+k.Why)
		}
	}
	c := check(Kernels, name, len(left) == 0, want, firstNonEmpty(strings.Join(left, "; "), "none"))
	c.Hint = hintUnless(c, "invar build --repair makes the links")
	return c
}

// repairable reports whether what the link would lead to is there: a release
// that was put right has neither.
func (p *prober) repairable(root, link, to string) bool {
	if strings.HasPrefix(to, "{") {
		return true
	}
	return p.there(filepath.Join(root, filepath.Dir(link), to))
}

// compiledWith compares the CANN in version.info with that of the installation.
func (p *prober) compiledWith() report.Check {
	const name = "CANN of the kernels"
	r, here := p.receipt.Release, p.cannVersion()
	if r.Compiled == "" {
		return skipped(Kernels, name, "version.info of the package does not tell which CANN compiled it")
	}
	want := "compiled with CANN " + here + " but for the patch level"
	a, errA := version.Parse(version.CANN, r.Compiled)
	b, errB := version.Parse(version.CANN, here)
	ok := errA == nil && errB == nil && a.Major() == b.Major() && a.Minor() == b.Minor()
	c := check(Kernels, name, ok, want, "compiled with CANN "+r.Compiled)
	c.Hint = hintUnless(c, "take the package for this CANN, or install CANN "+r.Compiled)
	return c
}
