// Package proof says from machine code alone, without a GPU, what kernels are
// made of: which architectures are there, what each kernel takes, and that none
// adds floating-point numbers in an order that threads decide.
package proof

import (
	"fmt"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/sass"
)

// A Spec says what is proved: the fatbins and what must be in them.
type Spec struct {
	Cuobjdump string   `json:"cuobjdump"`
	Nvdisasm  string   `json:"nvdisasm"`
	Toolkit   string   `json:"toolkit"` // version of nvcc
	Compiler  string   `json:"compiler"`
	Contract  string   `json:"contract"`
	Arches    []string `json:"arches"` // as --arch takes them: "9.0", "8.0+PTX"
	Fatbins   []Fatbin `json:"fatbins"`
}

// A Fatbin is one file and the images that it was made from.
type Fatbin struct {
	Source string  `json:"source"` // name of the kernel source
	File   string  `json:"file"`
	Images []Image `json:"images"`
}

// An Image is one compiled file.
type Image struct {
	Arch string `json:"arch"` // "sm_90", "compute_80"
	File string `json:"file"`
}

// A Proof is what was found. It lies in the manifest of the run package.
type Proof struct {
	Toolkit  string   `json:"toolkit"`
	Compiler string   `json:"compiler"` // digest of nvcc, cicc and ptxas
	Contract string   `json:"contract"`
	Arches   []string `json:"arches"`
	Images   []Found  `json:"images"`
}

// A Found is one image with its kernels.
type Found struct {
	Source  string   `json:"source"`
	Arch    string   `json:"arch"`
	SHA256  string   `json:"sha256"`
	Kernels []Kernel `json:"kernels"`
}

// A Kernel joins what the disassembly and the resource usage say.
type Kernel struct {
	sass.Kernel
	sass.Usage
}

// Count is the number of kernels in all images.
func (p Proof) Count() int {
	n := 0
	for _, i := range p.Images {
		n += len(i.Kernels)
	}
	return n
}

// Spilling names the kernels that keep registers in local memory, which costs
// time and changes no bit.
func (p Proof) Spilling() []string {
	var out []string
	for _, i := range p.Images {
		for _, k := range i.Kernels {
			if k.LocalStores+k.LocalLoads > 0 {
				out = append(out, fmt.Sprintf("%s on %s (%d stores, %d loads)", k.Name, i.Arch, k.LocalStores, k.LocalLoads))
			}
		}
	}
	return out
}

// forbidden is the error for instructions that must not be there.
func forbidden(source, arch string, faults []sass.Fault) error {
	var lines []string
	for _, f := range faults {
		if l := f.String(); !slices.Contains(lines, l) {
			lines = append(lines, l)
		}
	}
	return report.Problemf(report.BuildFailed, "static proof: %s for %s is not free of order", source, arch).
		WithWant("no floating-point atomics or reductions to memory", strings.Join(lines, "; ")).
		WithHint("the kernel must combine its parts in a fixed order; nvdisasm -c shows the instructions")
}
