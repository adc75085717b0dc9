package matrix

import (
	"fmt"
	"slices"

	"github.com/invar-ops/invar/internal/image"
	"github.com/invar-ops/invar/internal/target"
)

// markImages finds the rows that `invar image build` makes as they are: the
// base's own Python, and the torch that the Dockerfile puts in. Only those have
// tags, for an image of another torch under the same tag would replace it.
func markImages(rows []Row, families []image.Family) error {
	for _, fam := range families {
		t, err := target.Find(fam.Target)
		if err != nil {
			return err
		}
		newest := ""
		for i := range rows {
			r := &rows[i]
			if r.Family != fam.Name {
				continue
			}
			if newest == "" {
				newest = r.Torch
			}
			r.Image = r.Image && builds(fam, t, *r, newest)
			if !r.Image {
				r.Tag, r.Tags = "", []string{}
			}
		}
		if !slices.ContainsFunc(rows, func(r Row) bool { return r.Family == fam.Name && r.Image }) {
			return fmt.Errorf("no row is the image %s", fam.Name)
		}
	}
	return nil
}

// builds reports whether the family's Dockerfile installs the torch of r: the
// one of its build arguments, of the target's own environment, or the newest.
func builds(fam image.Family, t target.Target, r Row, newest string) bool {
	args := map[string]string{}
	for _, a := range fam.Args {
		args[a.Name] = a.Default
	}
	if want, ok := args[torchArg]; ok {
		return r.Requirements == want && r.CANN == args[cannArg]
	}
	if len(t.Python.Install) > 0 {
		return slices.Contains(t.Python.Install, "torch=="+r.Torch)
	}
	return r.Torch == newest
}
