package image

import (
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// LocalRepository names images that stay on this host.
const LocalRepository = "localhost/invar"

// Options choose rows of the matrix and what they are called.
type Options struct {
	Families   []string          // none is all
	OS         string            // empty is all; a build takes the first
	Platforms  []string          // none is all that the family has
	Repository string            // "quay.io/me/invar"
	Version    string            // first part of every tag
	Args       map[string]string // build arguments
	Base       string            // in place of the matrix's base image
}

// A Row is one image of the plan: all that a builder has to be told.
type Row struct {
	Name       string            `json:"name"` // "ascend910b-openeuler24.03"
	Family     string            `json:"family"`
	Target     string            `json:"target"`
	SoC        string            `json:"soc"`
	OS         string            `json:"os"`
	Manager    string            `json:"manager"`
	Platforms  []string          `json:"platforms"`
	Dockerfile string            `json:"dockerfile"`
	Base       string            `json:"base"`
	Args       map[string]string `json:"args"`
	Tags       []string          `json:"tags"` // whole references
	Require    int               `json:"require"`
}

// Plan lists the images that o chooses.
func Plan(o Options) ([]Row, error) {
	all, err := Families()
	if err != nil {
		return nil, err
	}
	if len(o.Families) > 0 {
		all = nil
		for _, name := range o.Families {
			f, err := Find(name)
			if err != nil {
				return nil, err
			}
			all = append(all, f)
		}
	}
	var rows []Row
	for _, f := range all {
		for _, v := range f.Variants {
			if o.OS != "" && v.OS != o.OS {
				continue
			}
			row, err := f.row(v, o)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return nil, report.Usagef("no image has the operating system %q", o.OS).WithHint("invar image plan lists all")
	}
	return rows, nil
}

func (f Family) row(v Variant, o Options) (Row, error) {
	values, err := f.arguments(o.Args)
	if err != nil {
		return Row{}, err
	}
	row := Row{
		Name: f.Name + "-" + v.OS, Family: f.Name, Target: f.Target, SoC: values[socArg], OS: v.OS, Manager: v.Manager,
		Platforms: f.Platforms, Dockerfile: f.Dockerfile, Args: values, Require: f.Require, Base: o.Base,
	}
	if row.Base == "" {
		if row.Base, err = expand(v.Base, values); err != nil {
			return Row{}, err
		}
	}
	if len(o.Platforms) > 0 {
		if row.Platforms, err = f.platforms(o.Platforms); err != nil {
			return Row{}, err
		}
	}
	for _, t := range v.Tags {
		row.Tags = append(row.Tags, o.Repository+":"+o.Version+t)
	}
	return row, nil
}

// platforms checks that every asked platform is one of the family's.
func (f Family) platforms(asked []string) ([]string, error) {
	for _, p := range asked {
		found := false
		for _, have := range f.Platforms {
			found = found || p == have
		}
		if !found {
			return nil, report.Usagef("image %s has no platform %q", f.Name, p).WithWant("one of "+strings.Join(f.Platforms, ", "), "")
		}
	}
	return asked, nil
}
