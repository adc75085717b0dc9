package host

import (
	"slices"
	"strconv"
	"strings"

	"github.com/invar-ops/invar/internal/cgroup"
	"github.com/invar-ops/invar/internal/host/chip"
)

func isCPU(s string) bool {
	return slices.Contains([]string{"cpu", "x86_64", "aarch64"}, strings.ToLower(strings.TrimSpace(s)))
}

// keys reads "key : value" lines, the first of each key, keys in lower case.
func keys(text string) map[string]string {
	out := map[string]string{}
	for _, l := range lines(text) {
		if k, v, ok := keyValue(l); ok {
			k = strings.ToLower(k)
			if _, have := out[k]; !have {
				out[k] = v
			}
		}
	}
	return out
}

// armVendors are the implementers of /proc/cpuinfo that servers have.
var armVendors = map[string]string{
	"0x41": "ARM", "0x46": "Fujitsu", "0x48": "HiSilicon", "0x4e": "NVIDIA", "0x61": "Apple", "0xc0": "Ampere", "0x51": "Qualcomm", "0x70": "Phytium", "0x6d": "Microsoft",
}

func readCPU(rules *chip.Rules, f *Facts, e *Evidence) {
	k := keys(e.Answer)
	var flags []string
	switch {
	case k["flags"] != "":
		flags = strings.Fields(k["flags"])
		if slices.Contains(flags, "lm") {
			f.CPU.Arch = "x86_64"
		}
		f.CPU.Vendor, f.CPU.Model = k["vendor_id"], k["model name"]
	case k["features"] != "":
		flags = strings.Fields(k["features"])
		if slices.Contains(flags, "asimd") {
			f.CPU.Arch = "aarch64"
		}
		f.CPU.Vendor, f.CPU.Model = armVendors[strings.ToLower(k["cpu implementer"])], k["model name"]
		if f.CPU.Model == "" {
			f.CPU.Model = strings.TrimSpace("part " + k["cpu part"])
		}
	default:
		if e.Reason == "" {
			e.Reason = "no flags and no features in it"
		}
		return
	}
	f.CPU.Levels = rules.Levels(f.CPU.Arch, flags)
	f.CPU.Flags = rules.ISAFlags(flags)
	e.Understood = f.CPU.Arch + ", " + strings.Join(f.CPU.Levels, ", ")
}

func readTopology(_ *chip.Rules, f *Facts, e *Evidence) {
	k := keys(e.Answer)
	f.CPU.Cores = countList(k["online"])
	f.CPU.Affinity = countList(k["cpus_allowed_list"])
	f.CPU.NUMA = countList(k["nodes"])
	f.Memory.TotalBytes = number(k["memtotal"]) << 10 // printed in kB
	f.Memory.AvailableBytes = number(k["memavailable"]) << 10
	if f.CPU.Arch == "" {
		f.CPU.Arch = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[k["goarch"]]
	}
	e.Understood = strconv.Itoa(f.CPU.Cores) + " cores, " + gib(f.Memory.TotalBytes)
}

// countList counts the numbers of a kernel list such as "0-3,8,10-11".
func countList(s string) int {
	n := 0
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isNumber(from) {
			continue
		}
		if !isRange || !isNumber(to) {
			n++
			continue
		}
		if a, b := number(from), number(to); b >= a && b-a < 1<<20 {
			n += int(b - a + 1)
		}
	}
	return n
}

// readLimits takes the smallest CPU and memory limit of all the cgroups above.
func readLimits(_ *chip.Rules, f *Facts, e *Evidence) {
	l := cgroup.Tightest(cgroup.Parse(e.Answer))
	f.CPUQuota, f.Memory.CgroupLimitBytes = l.CPUs, l.Memory
	var said []string
	if l.CPUs > 0 {
		said = append(said, strconv.FormatFloat(l.CPUs, 'g', 3, 64)+" CPUs")
	}
	if l.Memory > 0 {
		said = append(said, gib(l.Memory))
	}
	if len(said) == 0 && e.Reason == "" {
		said = []string{"no limit"}
	}
	e.Understood = strings.Join(said, ", ")
}

func gib(bytes int64) string {
	return strconv.FormatFloat(float64(bytes)/(1<<30), 'f', 1, 64) + " GiB"
}

func readOSRelease(_ *chip.Rules, f *Facts, e *Evidence) {
	p := pairs(e.Answer)
	f.OS.ID, f.OS.Version, f.OS.Pretty = p["ID"], p["VERSION_ID"], p["PRETTY_NAME"]
	e.Understood = f.OS.Pretty
}

func readLibc(_ *chip.Rules, f *Facts, e *Evidence) {
	k := keys(e.Answer)
	switch {
	case k["glibc"] != "":
		f.OS.Libc, f.OS.LibcVersion = "glibc", k["glibc"]
	case k["musl"] != "" || strings.Contains(k["loader"], "musl"):
		f.OS.Libc, f.OS.LibcVersion = "musl", k["musl"]
	default:
		e.Reason = "no C library found"
		return
	}
	if f.CPU.Arch == "" {
		for _, arch := range []string{"x86-64", "x86_64", "aarch64"} {
			if strings.Contains(k["loader"], arch) {
				f.CPU.Arch = strings.ReplaceAll(arch, "-", "_")
			}
		}
	}
	e.Understood = strings.TrimSpace(f.OS.Libc + " " + f.OS.LibcVersion)
}

func readKernel(_ *chip.Rules, f *Facts, e *Evidence) {
	f.OS.Kernel = strings.TrimSpace(e.Answer)
	f.NVIDIA.WSL = strings.Contains(strings.ToLower(f.OS.Kernel), "microsoft")
	e.Understood = f.OS.Kernel
}

func readContainer(_ *chip.Rules, f *Facts, e *Evidence) {
	kinds := []struct{ sign, kind string }{
		{"KUBERNETES", "kubernetes"},
		{"kubepods", "kubernetes"},
		{".containerenv", "podman"},
		{"libpod", "podman"},
		{".dockerenv", "docker"},
		{"docker", "docker"},
		{"containerd", "containerd"},
		{"lxc", "lxc"},
		{"env: container", "container"},
		{"WSL_DISTRO", "wsl"},
		{"overlay", "container"},
	}
	for _, l := range lines(e.Answer) {
		if l != "" && !slices.Contains(f.Container.Signs, l) {
			f.Container.Signs = append(f.Container.Signs, l)
		}
	}
	for _, k := range kinds {
		if f.Container.Kind == "" && strings.Contains(e.Answer, k.sign) {
			f.Container.Kind = k.kind
		}
	}
	f.Container.In = f.Container.Kind != "" && f.Container.Kind != "wsl"
	if e.Understood = f.Container.Kind; e.Understood == "" {
		e.Understood = "none"
	}
}
