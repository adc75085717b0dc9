package host

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/invar-ops/invar/internal/cgroup"
	"github.com/invar-ops/invar/internal/libc"
	"github.com/invar-ops/invar/internal/rootfs"
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

// askLimits reads the limits of this process's cgroup and of all above it.
func askLimits(_ context.Context, a *asker) []Evidence {
	start := time.Now()
	e := Evidence{Source: "cgroup", Asked: "/proc/self/cgroup, /sys/fs/cgroup", Answer: cgroup.Text(cgroup.Read(a.text))}
	if e.Elapsed = time.Since(start); e.Answer == "" {
		e.Reason = "no limit files"
	}
	return one(e)
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

// libc names the C library of the root, and the loaders, which name the
// architecture.
func (a *asker) libc() string {
	r, err := rootfs.Open(a.root)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range libc.Loaders(r) {
		fmt.Fprintf(&b, "loader: %s\n", p)
	}
	if l, ok := libc.Find(r); ok {
		fmt.Fprintf(&b, "%s: %s\npath: %s\n", l.Kind, l.Version, l.File)
	}
	return b.String()
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
