package matrix

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/doctor"
	"github.com/invar-ops/invar/internal/image"
	"github.com/invar-ops/invar/internal/target"
	"github.com/invar-ops/invar/internal/version"
)

// Options say what images are called and where jobs run.
type Options struct {
	Repository string            // of the images
	Version    string            // first part of every tag
	Runners    map[string]string // label by architecture, in place of matrix.yaml's
}

// Plan lists every row: targets in the order of the images, torch new to old.
func Plan(o Options) ([]Row, error) {
	f, err := load()
	if err != nil {
		return nil, err
	}
	families, err := image.Families()
	if err != nil {
		return nil, err
	}
	// An image without operators has no Python and nothing to probe.
	families = slices.DeleteFunc(families, func(f image.Family) bool { return f.Target == "" })
	var rows []Row
	for _, fam := range families {
		t, err := target.Find(fam.Target)
		if err != nil {
			return nil, err
		}
		combinations, err := f.combinations(t)
		if err != nil {
			return nil, err
		}
		images := map[string][]image.Row{} // by CANN
		for _, c := range combinations {
			if images[c.cann] == nil {
				if images[c.cann], err = plannedImages(fam.Name, c.cann, o); err != nil {
					return nil, err
				}
			}
			made, err := f.rows(images[c.cann], t, c, o)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", fam.Name, err)
			}
			rows = append(rows, made...)
		}
	}
	if err := markImages(rows, families); err != nil {
		return nil, err
	}
	return rows, nil
}

func plannedImages(family, cann string, o Options) ([]image.Row, error) {
	args := map[string]string{}
	if cann != "" {
		args[cannArg] = cann
	}
	return image.Plan(image.Options{Families: []string{family}, Repository: o.Repository, Version: o.Version, Args: args})
}

// rows lists those of the images of one family with one torch.
func (f facts) rows(images []image.Row, t target.Target, c combination, o Options) ([]Row, error) {
	var rows []Row
	for _, im := range images {
		pythons, err := f.pythons(im.Base)
		if err != nil {
			return nil, err
		}
		for _, p := range pythons {
			if !version.Within(version.PEP440, c.python, p.Version) || !version.Within(version.PEP440, ">="+t.Python.Minimum, p.Version) {
				continue
			}
			for _, platform := range im.Platforms {
				row, err := f.row(im, p, c, platform, o)
				if err != nil {
					return nil, err
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

func (f facts) row(im image.Row, p basePython, c combination, platform string, o Options) (Row, error) {
	_, arch, _ := strings.Cut(platform, "/")
	label := o.Runners[arch]
	if label == "" {
		var err error
		if label, err = f.runner(arch); err != nil {
			return Row{}, err
		}
	}
	row := Row{
		Name:   fmt.Sprintf("%s-%s-%s-py%s-torch%s", im.Family, im.OS, arch, p.Version, c.torch),
		Target: im.Target, Family: im.Family, Arch: arch, Platform: platform, OS: im.OS, Python: p.Version, Torch: c.torch,
		Requirements: c.requirements, CANN: c.cann, SoC: im.SoC, Runner: label, Container: container(im.Base, p), Require: im.Require,
		Tag:  o.Repository + ":" + o.Version + "-" + arch + strings.TrimPrefix(im.Tags[0], o.Repository+":"+o.Version),
		Tags: im.Tags,
	}
	row.Image = row.Container == im.Base
	return row, nil
}

// pythonOfTag is the Python that a tag names.
var pythonOfTag = regexp.MustCompile(`-py\d+\.\d+$`)

// container is the image that brings the Python: one of its own, the base with
// that Python in its tag, or the base itself.
func container(base string, p basePython) string {
	if p.Image != "" {
		return p.Image
	}
	tagged, _, _ := strings.Cut(base, "@")
	if other := pythonOfTag.ReplaceAllString(tagged, "-py"+p.Version); other != tagged {
		return other // the digest is that of the other Python
	}
	return base
}

const (
	cannArg  = "CANN_VERSION"
	torchArg = "TORCH_REQUIREMENTS"
)

// combinations are the torches of a target, new to old: for one that needs CANN
// the published ones, the newest for each torch; else what its range allows.
func (f facts) combinations(t target.Target) ([]combination, error) {
	i := slices.IndexFunc(t.Requires, func(n target.Need) bool { return n.Item == "cann" })
	if i < 0 {
		var out []combination
		for _, r := range f.Torch {
			if version.Within(version.PEP440, t.Python.Torch, r.Version) {
				out = append(out, combination{torch: r.Version, python: r.Python, requirements: "torch==" + r.Version})
			}
		}
		return out, nil
	}
	d, err := doctor.Load()
	if err != nil {
		return nil, err
	}
	var out []combination
	for _, r := range d.Matrix.Usable(t.Name) {
		known := slices.ContainsFunc(out, func(c combination) bool { return c.torch == r.Torch })
		if known || !version.Within(version.CANN, t.Requires[i].Want, r.CANN) || !version.Within(version.PEP440, t.Python.Torch, r.Torch) {
			continue
		}
		out = append(out, combination{
			torch: r.Torch, python: r.Python, cann: r.CANN,
			requirements: "torch==" + r.Torch + " torch-npu==" + r.TorchNPU,
		})
	}
	return out, nil
}
