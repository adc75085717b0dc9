// Package oppkg reads an operator package of CANN that was extracted from its
// run package, judges whether it fits, and installs it below a folder: with its
// own script, confined, or by copying what the script would copy. What the
// operators are worth is for the probe to say.
//
//	install.sh
//	packages/vendors/<vendor>/op_api/lib/libcust_opapi.so
//	                          op_impl/ai_core/tbe/kernel/<soc>/...
//	                          op_impl/ai_core/tbe/kernel/config/<soc>/*.json
//	                          op_proto/lib/linux/<arch>/...
//	                          version.info
package oppkg

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/cann"
	"github.com/invar-ops/invar/internal/elffile"
	"github.com/invar-ops/invar/internal/report"
)

// Library is the file by which an operator package is found at run time.
const Library = "op_api/lib/libcust_opapi.so"

const (
	kernels = "op_impl/ai_core/tbe/kernel"
	vendors = "packages/vendors"
)

// A Package is what an extracted operator package says of itself.
type Package struct {
	Dir     string   `json:"-"`             // of the extraction
	Vendor  string   `json:"vendor"`        // "batch_invariant"
	Kernels []string `json:"kernels"`       // SoCs with kernels: "ascend910b"
	Arch    string   `json:"arch"`          // of libcust_opapi.so
	Arches  []string `json:"host_arches"`   // folders with host libraries
	CANN    string   `json:"cann"`          // that it was compiled with; "" when it does not tell
	Version string   `json:"ops,omitempty"` // of the operators, when it tells
}

func (p Package) source() string { return filepath.Join(p.Dir, vendors, p.Vendor) }

// VendorDir is the vendor's folder in the extraction.
func (p Package) VendorDir() string { return p.source() }

// Read describes the package in dir. Nothing of it is run.
func Read(dir string) (Package, error) {
	p := Package{Dir: dir}
	names := folders(filepath.Join(dir, vendors))
	if len(names) != 1 {
		got := "none"
		if len(names) > 1 {
			got = strings.Join(names, ", ")
		}
		return p, report.Problemf(report.Unmet, "this run package holds no operator package that invar knows").
			WithWant("one folder in "+vendors, got).
			WithHint("invar package inspect FILE lists what it holds")
	}
	p.Vendor = names[0]
	lib, err := elffile.Read(filepath.Join(p.source(), Library))
	if err != nil {
		return p, report.Problemf(report.Unmet, "the package of vendor %s has no usable %s: %w", p.Vendor, Library, err).
			WithWant("a shared library", "none").WithHint("fetch it again, or take another version")
	}
	p.Arch = lib.Arch
	for _, name := range folders(filepath.Join(p.source(), kernels)) {
		if name != "config" {
			p.Kernels = append(p.Kernels, name)
		}
	}
	p.Arches = folders(filepath.Join(p.source(), "op_proto/lib/linux"))
	if b, err := os.ReadFile(filepath.Join(p.source(), "version.info")); err == nil {
		info := cann.ParseInfo(b)
		p.CANN, p.Version = info.First("custom_opp_compiler_version", "compiler_version"), info.First("version", "ops_version")
	}
	return p, nil
}

// folders lists the folders in dir by name.
func folders(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out
}
