package doctor

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// limits reads memory, processors, mounts and room; only a running root has them.
func (g *gatherer) limits(f *Facts) {
	if !g.root.Live() {
		return
	}
	f.Limits = g.memory()
	f.Limits.CPUs = runtime.NumCPU() // counts the affinity mask
	if quota := g.quota(); quota > 0 {
		f.Limits.CPUs = min(f.Limits.CPUs, quota)
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

func (g *gatherer) memory() Limits {
	l := Limits{}
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
	l.Cgroup, l.CgroupUsed, l.CgroupFile = g.cgroup()
	return l
}

// cgroup finds the tightest limit from the process's own group up to the root,
// in version 2 (memory.max) and version 1 (memory.limit_in_bytes). Inside a
// container the group's own files are at the top of the mount.
func (g *gatherer) cgroup() (limit, used int64, file string) {
	limit = math.MaxInt64
	try := func(dir, maxName, curName string) {
		v, ok := g.number(dir + "/" + maxName)
		if !ok || v >= 1<<60 || v >= limit { // version 1 writes 2^63 - 4096 for none
			return
		}
		limit, file = v, dir+"/"+maxName
		used, _ = g.number(dir + "/" + curName)
		if cache, ok := g.reclaimable(dir + "/memory.stat"); ok {
			used = max(0, used-cache)
		}
	}
	b, _ := g.root.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for at := path.Clean(parts[2]); ; at = path.Dir(at) {
			if parts[1] == "" {
				try(path.Join("/sys/fs/cgroup", at), "memory.max", "memory.current")
			} else if strings.Contains(","+parts[1]+",", ",memory,") {
				try(path.Join("/sys/fs/cgroup/memory", at), "memory.limit_in_bytes", "memory.usage_in_bytes")
			}
			if at == "/" || at == "." {
				break
			}
		}
	}
	if limit == math.MaxInt64 {
		return 0, 0, ""
	}
	return limit, used, file
}

// number reads a file with one number in it; "max" is none.
func (g *gatherer) number(p string) (int64, bool) {
	b, err := g.root.ReadFile(p)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}

// reclaimable is page cache that the kernel gives back before it kills.
func (g *gatherer) reclaimable(p string) (int64, bool) {
	b, err := g.root.ReadFile(p)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) == 2 && (f[0] == "inactive_file" || f[0] == "total_inactive_file") {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// quota is how many processors cgroups allow, rounded up; 0 is no limit.
func (g *gatherer) quota() int {
	if b, err := g.root.ReadFile("/sys/fs/cgroup/cpu.max"); err == nil {
		f := strings.Fields(string(b))
		if len(f) == 2 && f[0] != "max" {
			return ratio(f[0], f[1])
		}
		return 0
	}
	q, ok1 := g.number("/sys/fs/cgroup/cpu/cpu.cfs_quota_us")
	p, ok2 := g.number("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
	if ok1 && ok2 && q > 0 && p > 0 {
		return int((q + p - 1) / p)
	}
	return 0
}

func ratio(a, b string) int {
	x, y := atoi(a), atoi(b)
	if x <= 0 || y <= 0 {
		return 0
	}
	return (x + y - 1) / y
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
