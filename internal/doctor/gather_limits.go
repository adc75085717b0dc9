package doctor

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/invar-ops/invar/internal/cgroup"
)

// limits reads memory, processors, mounts and room; only a running root has them.
func (g *gatherer) limits(f *Facts) {
	if !g.root.Live() {
		return
	}
	groups := cgroup.Tightest(cgroup.Read(g.text))
	f.Limits = g.memory(groups)
	f.Limits.CPUs = runtime.NumCPU() // counts the affinity mask
	if groups.CPUs > 0 {
		f.Limits.CPUs = min(f.Limits.CPUs, int(math.Ceil(groups.CPUs)))
	}
	mounts := g.mounts()
	places := map[string]string{"tmp": orText(g.env["TMPDIR"], "/tmp"), "prefix": g.homeOf()}
	for _, t := range f.CANN {
		places["cann"] = t.Dir
	}
	for _, use := range []string{"tmp", "prefix", "cann"} {
		if p := places[use]; p != "" && p != "/nonexistent" {
			f.Places = append(f.Places, place(use, p, mounts))
		}
	}
	if p := place("shm", "/dev/shm", mounts); p.Error == "" {
		f.Limits.SharedBytes = total("/dev/shm")
	}
}

func (g *gatherer) memory(groups cgroup.Limits) Limits {
	l := Limits{Cgroup: groups.Memory, CgroupFile: groups.MemoryFile}
	b, _ := g.root.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(b)) {
		k, v, _ := strings.Cut(line, ":")
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(v), " kB"), 10, 64)
		if err != nil {
			continue
		}
		switch k {
		case "MemTotal":
			l.Memory = kib << 10
		case "MemAvailable":
			l.Available = kib << 10
		}
	}
	if l.CgroupFile != "" {
		l.CgroupUsed = cgroup.Used(g.text, l.CgroupFile)
	}
	return l
}

// text is what a file holds, "" when it cannot be read.
func (g *gatherer) text(p string) string {
	b, err := g.root.ReadFile(p)
	if err != nil {
		return ""
	}
	return string(b)
}

// A mount is one line of mountinfo.
type mount struct{ point, options, kind string }

func (g *gatherer) mounts() []mount {
	b, _ := g.root.ReadFile("/proc/self/mountinfo")
	return parseMounts(string(b))
}

// parseMounts reads mountinfo: fields 5 and 6 are the point and its options;
// after " - " come the type, the source and the options of the file system.
func parseMounts(text string) []mount {
	var out []mount
	for line := range strings.Lines(text) {
		left, right, ok := strings.Cut(line, " - ")
		f, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(f) < 6 || len(r) < 1 {
			continue
		}
		point := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\134`, `\`).Replace(f[4])
		out = append(out, mount{point: point, options: f[5], kind: r[0]})
	}
	return out
}

// mountOf is the mount that holds p: the longest point above it, the later of two.
func mountOf(mounts []mount, p string) mount {
	best := mount{}
	for _, m := range mounts {
		under := m.point == "/" || p == m.point || strings.HasPrefix(p, m.point+"/")
		if under && len(m.point) >= len(best.point) {
			best = m
		}
	}
	return best
}

func place(use, p string, mounts []mount) Place {
	out := Place{Use: use, Path: p, Free: -1}
	at := filepath.Clean(p)
	for at != "/" {
		if st, err := os.Stat(at); err == nil {
			if !st.IsDir() {
				out.Error = at + " is not a directory"
				return out
			}
			break
		}
		at = filepath.Dir(at)
	}
	if real, err := filepath.EvalSymlinks(at); err == nil {
		at = real
	}
	m := mountOf(mounts, at)
	out.Mount, out.Options = m.point, m.options
	var st syscall.Statfs_t
	if err := syscall.Statfs(at, &st); err != nil {
		out.Error = err.Error()
		return out
	}
	out.Free = int64(st.Bavail) * st.Bsize
	if syscall.Access(at, 2) != nil && !strings.Contains(","+m.options+",", ",ro,") {
		out.Error = at + " cannot be written by this user"
	}
	return out
}

func total(p string) int64 {
	var st syscall.Statfs_t
	if syscall.Statfs(p, &st) != nil {
		return 0
	}
	return int64(st.Blocks) * st.Bsize
}
