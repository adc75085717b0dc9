package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/run"
)

// A source asks one thing and keeps the answers.
type source func(ctx context.Context, a *asker) []Evidence

// systemSources say what the machine is, apart from accelerators.
var systemSources = []source{askCPU, askLimits, askOS, askContainer}

func one(e Evidence) []Evidence { return []Evidence{e} }

// askCPU keeps the first processor of /proc/cpuinfo, which all others repeat,
// and the lists of CPUs and nodes.
func askCPU(_ context.Context, a *asker) []Evidence {
	cpu := a.file("cpuinfo", "/proc/cpuinfo")
	cpu.Answer, _, _ = strings.Cut(cpu.Answer, "\n\n")
	var b strings.Builder
	if a.root == "/" {
		fmt.Fprintf(&b, "goarch: %s\n", runtime.GOARCH)
	}
	for _, l := range lines(a.text("/proc/self/status")) {
		if strings.HasPrefix(l, "Cpus_allowed_list") {
			fmt.Fprintln(&b, l)
		}
	}
	fmt.Fprintf(&b, "online: %s\n", a.line("/sys/devices/system/cpu/online"))
	fmt.Fprintf(&b, "nodes: %s\n", a.line("/sys/devices/system/node/online"))
	for _, l := range lines(a.text("/proc/meminfo")) {
		if strings.HasPrefix(l, "MemTotal") || strings.HasPrefix(l, "MemAvailable") {
			fmt.Fprintln(&b, l)
		}
	}
	return []Evidence{cpu, {Source: "topology", Asked: "/proc/self/status, /proc/meminfo, /sys/devices/system", Answer: b.String()}}
}

func (a *asker) text(name string) string {
	s, err := a.read(name)
	if err != nil {
		return ""
	}
	return s
}

// limitFiles are the cgroup files that bound a process: v2, then v1.
var limitFiles = []struct{ v1, name string }{
	{"", "cpu.max"},
	{"", "memory.max"},
	{"cpu", "cpu.cfs_quota_us"},
	{"cpu", "cpu.cfs_period_us"},
	{"memory", "memory.limit_in_bytes"},
}

// askLimits reads the limits of this process's cgroup and of all above it: the
// smallest counts. In a container the path of /proc/self/cgroup may not exist,
// then the mount's own root is the cgroup.
func askLimits(_ context.Context, a *asker) []Evidence {
	start := time.Now()
	groups := a.text("/proc/self/cgroup")
	var b strings.Builder
	seen := map[string]bool{}
	for _, f := range limitFiles {
		for _, mount := range cgroupMounts(f.v1) {
			for _, dir := range ancestors(cgroupPath(groups, f.v1)) {
				p := mount + dir + "/" + f.name
				if v := a.line(p); v != "" && !seen[p] {
					seen[p] = true
					fmt.Fprintf(&b, "%s: %s\n", p, v)
				}
			}
		}
	}
	e := Evidence{Source: "cgroup", Asked: "/proc/self/cgroup, /sys/fs/cgroup", Answer: b.String(), Elapsed: time.Since(start)}
	if e.Answer == "" {
		e.Reason = "no limit files"
	}
	return one(e)
}

func cgroupMounts(controller string) []string {
	switch controller {
	case "":
		return []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
	case "cpu":
		return []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}
	}
	return []string{"/sys/fs/cgroup/" + controller}
}

// cgroupPath finds a controller's path in /proc/self/cgroup; "" is the v2 line "0::/path".
func cgroupPath(groups, controller string) string {
	for _, l := range lines(groups) {
		f := strings.SplitN(l, ":", 3)
		if len(f) != 3 {
			continue
		}
		for c := range strings.SplitSeq(f[1], ",") {
			if c == controller && (controller != "" || f[0] == "0") {
				return strings.TrimSuffix(f[2], "/")
			}
		}
	}
	return ""
}

// ancestors lists a cgroup and those above it, ending with the root "".
func ancestors(path string) []string {
	out := []string{path}
	for path != "" {
		i := max(strings.LastIndexByte(path, '/'), 0)
		path = path[:i]
		out = append(out, path)
	}
	return out
}

func askOS(_ context.Context, a *asker) []Evidence {
	release := a.file("os-release", "/etc/os-release")
	if release.Absent {
		release = a.file("os-release", "/usr/lib/os-release")
	}
	return []Evidence{
		release,
		{Source: "libc", Asked: "libc.so.6 in the loader's folders", Answer: a.libc()},
		a.file("kernel", "/proc/sys/kernel/osrelease"),
	}
}

var (
	libcFolders = []string{
		"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
		"/lib64", "/usr/lib64", "/lib", "/usr/lib",
	}
	glibcBanner = regexp.MustCompile(`GNU C Library [^\n]{0,80}version ([0-9]+\.[0-9]+)`)
)

// libc names the C library of the root by its own banner, and the loader,
// which names the architecture. Nothing is started, so it works on an image
// of another architecture.
func (a *asker) libc() string {
	var b strings.Builder
	for _, p := range []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"} {
		if a.exists(p) {
			fmt.Fprintf(&b, "loader: %s\n", p)
		}
	}
	for _, d := range libcFolders {
		p, err := a.path(d + "/libc.so.6")
		if err != nil {
			continue
		}
		data, err := os.ReadFile(p)
		if err != nil {
			continue
		}
		if i := bytes.Index(data, []byte("GNU C Library")); i >= 0 {
			if m := glibcBanner.FindSubmatch(data[i:min(len(data), i+200)]); m != nil {
				fmt.Fprintf(&b, "glibc: %s\npath: %s/libc.so.6\n", m[1], d)
				break
			}
		}
	}
	if v := muslVersion(a.text("/lib/apk/db/installed")); v != "" {
		fmt.Fprintf(&b, "musl: %s\n", v)
	}
	return b.String()
}

func muslVersion(installed string) string {
	_, rest, ok := strings.Cut(installed, "P:musl\nV:")
	if !ok {
		return ""
	}
	v, _, _ := strings.Cut(rest, "\n")
	v, _, _ = strings.Cut(v, "-")
	return v
}

// containerFiles are files that only a container has.
var containerFiles = []string{"/.dockerenv", "/run/.containerenv"}

func askContainer(_ context.Context, a *asker) []Evidence {
	var b strings.Builder
	for _, f := range containerFiles {
		if a.exists(f) {
			fmt.Fprintf(&b, "file: %s\n", f)
		}
	}
	for _, k := range []string{"container", "KUBERNETES_SERVICE_HOST", "WSL_DISTRO_NAME"} {
		if run.Getenv(a.env, k) != "" {
			fmt.Fprintf(&b, "env: %s\n", k)
		}
	}
	for _, l := range lines(a.text("/proc/1/cgroup")) {
		for _, word := range []string{"docker", "kubepods", "containerd", "lxc", "libpod"} {
			if strings.Contains(l, word) {
				fmt.Fprintf(&b, "cgroup: %s\n", word)
			}
		}
	}
	for _, l := range lines(a.text("/proc/self/mountinfo")) {
		if f := strings.Fields(l); len(f) > 4 && f[4] == "/" {
			if _, fs, ok := strings.Cut(l, " - "); ok && strings.HasPrefix(fs, "overlay") {
				fmt.Fprintln(&b, "root: overlay")
			}
		}
	}
	return one(Evidence{Source: "container", Asked: strings.Join(containerFiles, ", ") + ", cgroup and mounts of process 1, environment", Answer: b.String()})
}
