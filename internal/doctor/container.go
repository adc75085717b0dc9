package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/invar-ops/invar/internal/report"
)

// A Family is what containers of some targets need from their host.
type Family struct {
	Targets []string `yaml:"targets"`
	Vendor  string   `yaml:"vendor"`
	Source  string   `yaml:"source"`
	Device  string   `yaml:"device"` // pattern of the nodes that are one accelerator each
	Group   string   `yaml:"group"`
	Devices []Wanted `yaml:"devices"`
	Mounts  []Wanted `yaml:"mounts"`
	Flags   []string `yaml:"flags"`
	Shm     int64    `yaml:"shm"` // bytes of /dev/shm
}

// A Wanted is one node or one mount source.
type Wanted struct {
	Path     string `yaml:"path"`
	Type     string `yaml:"type"`  // char, dir or file
	Other    string `yaml:"other"` // another place that some hosts have
	Why      string `yaml:"why"`
	Optional bool   `yaml:"optional"`
}

// RunFlags is how a container for the target is started on this host.
type RunFlags struct {
	Flags   []string `json:"flags"`
	Missing []string `json:"missing"` // needed on the host and not there, or of another type
	Skipped []string `json:"skipped"` // optional ones that the host has not
}

// Command is the flags as one pasteable command.
func (r RunFlags) Command(image string) string {
	return "docker run --rm -it " + strings.Join(r.Flags, " ") + " " + image
}

func (j *judge) family() (Family, bool) {
	for _, f := range j.d.Families {
		if slices.Contains(f.Targets, j.t.Name) {
			return f, true
		}
	}
	return Family{}, false
}

// found lists the paths of the facts that match a pattern, by number.
func (j *judge) found(pattern string) []string {
	var out []string
	for p := range j.f.Paths {
		if ok, err := path.Match(pattern, p); err == nil && ok {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b) // davinci2 before davinci10
		}
		return strings.Compare(a, b)
	})
	return out
}

// container judges nodes and mounts inside a container, and on a host with a
// device gives the flags that start one.
func (j *judge) container() (*RunFlags, []Finding) {
	fam, ok := j.family()
	if !ok {
		return nil, nil
	}
	if j.f.Container != "" {
		return nil, j.inside(fam)
	}
	if len(j.found(fam.Device)) == 0 || !j.f.Live {
		return nil, nil
	}
	return j.runFlags(fam), nil
}

func (j *judge) runFlags(fam Family) *RunFlags {
	r := &RunFlags{Missing: []string{}, Skipped: []string{}}
	pass := func(w Wanted, flag func(p string) string) {
		all := append(j.found(w.Path), j.found(orText(w.Other, "\x00"))...)
		if len(all) == 0 {
			line := w.Path + " (" + orText(w.Why, w.Type) + ")"
			if w.Optional {
				r.Skipped = append(r.Skipped, line)
			} else {
				r.Missing = append(r.Missing, line)
			}
			return
		}
		for _, p := range all {
			if n := j.f.Paths[p]; n.Kind != w.Type {
				r.Missing = append(r.Missing, fmt.Sprintf("%s is a %s, want a %s", p, n.Kind, w.Type))
				continue
			}
			r.Flags = append(r.Flags, flag(p))
		}
	}
	vendorRuntime := slices.Contains(fam.Flags, "--gpus=all") // the toolkit passes nodes and libraries by itself
	for _, w := range fam.Devices {
		pass(w, func(p string) string { return "--device=" + p })
	}
	for _, w := range fam.Mounts {
		pass(w, func(p string) string { return "-v " + p + ":" + p + ":ro" })
	}
	if vendorRuntime {
		r.Flags = nil
	}
	r.Flags = append(r.Flags, fam.Flags...)
	return r
}

// inside judges what this container was given.
func (j *judge) inside(fam Family) []Finding {
	var out []Finding
	devices := len(j.found(fam.Device)) > 0
	for _, w := range fam.Devices {
		out = append(out, j.nodes(w, fam, devices)...)
	}
	if fam.Vendor == "ascend" {
		for _, w := range fam.Mounts {
			out = append(out, j.mounted(w, devices)...)
		}
	}
	if s := j.f.Limits.SharedBytes; s > 0 && s < fam.Shm && devices {
		out = append(out, inContainer("shm", "/dev/shm", size(fam.Shm), size(s)+": collectives and data loaders stop with a bus error", "docker run --shm-size=1g ...", fam.Source))
	}
	return out
}

func inContainer(id, name, want, got, hint, source string) Finding {
	return Finding{ID: "container-" + id, Group: "container", For: "probe", Status: Warn, Requirement: report.Requirement{
		Name: name, Want: want, Got: got, Hint: hint, Source: source, OK: true,
	}}
}

// nodes: a container without any device is a build container and needs none.
func (j *judge) nodes(w Wanted, fam Family, devices bool) []Finding {
	all := j.found(w.Path)
	if len(all) == 0 && devices {
		return []Finding{inContainer("node", w.Path, "a "+w.Type+" node", "missing, although devices were passed", "docker run --device="+w.Path+" ...", fam.Source)}
	}
	var out []Finding
	for _, p := range all {
		n := j.f.Paths[p]
		switch {
		case n.Kind != w.Type:
			out = append(out, inContainer("node", p, "a "+w.Type+" node", "a "+n.Kind+": docker makes an empty directory where -v names what the host has not", "pass it with --device="+p, fam.Source))
		case n.Access != "":
			hint := "run as root, or chmod 666 " + p + " on the host"
			if fam.Group != "" {
				hint = fmt.Sprintf("docker run --group-add %d ...   (group %s on the host)", n.GID, fam.Group)
			}
			out = append(out, inContainer("access", p, "readable and writable", fmt.Sprintf("%s (mode %04o, group %d)", n.Access, n.Mode.Perm(), n.GID), hint, fam.Source))
		}
	}
	return out
}

func (j *judge) mounted(w Wanted, devices bool) []Finding {
	all := append(j.found(w.Path), j.found(orText(w.Other, "\x00"))...)
	if len(all) == 0 {
		if w.Optional || !devices {
			return nil
		}
		return []Finding{inContainer("mount", w.Path, "mounted ("+w.Why+")", "missing", "docker run -v "+w.Path+":"+w.Path+":ro ...", "vllm-ascend installation docs")}
	}
	var out []Finding
	for _, p := range all {
		if n := j.f.Paths[p]; n.Kind != w.Type {
			out = append(out, inContainer("mount", p, "a "+w.Type, "a "+n.Kind+": the host path did not exist when the container started, so docker made a directory",
				"remove it on the host (rmdir "+p+"), install what should be there, and start the container again", "seen with /etc/ascend_install.info"))
		}
	}
	return out
}
