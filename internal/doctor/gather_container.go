package doctor

import (
	"io/fs"
	"slices"
	"strings"
	"syscall"
)

// container says by which sign the root is one, and describes the nodes and
// mounts of the target's family.
func (g *gatherer) container(f *Facts) {
	f.Container = g.containerSign()
	f.Paths = map[string]Node{}
	for _, fam := range g.d.Families {
		if !slices.Contains(fam.Targets, g.t.Name) {
			continue
		}
		for _, w := range slices.Concat(fam.Devices, fam.Mounts) {
			for _, pattern := range []string{w.Path, w.Other} {
				if pattern == "" {
					continue
				}
				for _, p := range g.root.Glob(pattern) {
					f.Paths[p] = g.node(p, w.Type)
				}
			}
		}
	}
}

func (g *gatherer) containerSign() string {
	for _, p := range []string{"/.dockerenv", "/run/.containerenv"} {
		if g.root.Exists(p) {
			return p
		}
	}
	if v := g.env["container"]; v != "" {
		return "container=" + v
	}
	if g.env["KUBERNETES_SERVICE_HOST"] != "" {
		return "KUBERNETES_SERVICE_HOST"
	}
	for _, p := range []string{"/proc/1/cgroup", "/proc/self/cgroup"} {
		b, err := g.root.ReadFile(p)
		if err != nil {
			continue
		}
		for _, word := range []string{"docker", "kubepods", "containerd", "libpod", "lxc"} {
			if strings.Contains(string(b), word) {
				return word + " in " + p
			}
		}
	}
	return ""
}

// node describes p; access is tried where the root runs.
func (g *gatherer) node(p, want string) Node {
	st, err := g.root.Stat(p)
	if err != nil {
		return Node{Kind: "link"}
	}
	n := Node{Mode: st.Mode(), Kind: "other"}
	switch m := st.Mode(); {
	case m.IsDir():
		n.Kind = "dir"
	case m.IsRegular():
		n.Kind = "file"
	case m&fs.ModeCharDevice != 0:
		n.Kind = "char"
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok {
		n.UID, n.GID = sys.Uid, sys.Gid
	}
	if !g.root.Live() {
		return n
	}
	mode := uint32(4) // read
	if want == "char" {
		mode = 6 // nodes are opened for reading and writing
	}
	if host, err := g.root.Host(p); err == nil {
		if err := syscall.Access(host, mode); err != nil {
			n.Access = err.Error()
		}
	}
	return n
}
