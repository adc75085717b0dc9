package host

import (
	"slices"
	"strconv"
	"strings"

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
	var quota float64
	period := map[string]float64{}
	micro := map[string]float64{}
	for _, l := range lines(e.Answer) {
		at := strings.LastIndex(l, ": ")
		if at < 0 {
			continue
		}
		file, value := l[:at], strings.TrimSpace(l[at+2:])
		dir := file[:strings.LastIndexByte(file, '/')+1]
		switch strings.TrimPrefix(file, dir) {
		case "cpu.max":
			q, p, _ := strings.Cut(value, " ")
			quota = smaller(quota, ratio(float(q), float(p)))
		case "cpu.cfs_quota_us":
			micro[dir] = float(value)
		case "cpu.cfs_period_us":
			period[dir] = float(value)
		case "memory.max", "memory.limit_in_bytes":
			limit, err := strconv.ParseInt(value, 10, 64)
			// v1 prints the largest page-aligned number for "no limit".
			if err == nil && limit > 0 && limit < 1<<60 {
				if f.Memory.CgroupLimitBytes == 0 || limit < f.Memory.CgroupLimitBytes {
					f.Memory.CgroupLimitBytes = limit
				}
			}
		}
	}
	for dir, q := range micro {
		quota = smaller(quota, ratio(q, period[dir]))
	}
	f.CPUQuota = quota
	var said []string
	if quota > 0 {
		said = append(said, strconv.FormatFloat(quota, 'g', 3, 64)+" CPUs")
	}
	if f.Memory.CgroupLimitBytes > 0 {
		said = append(said, gib(f.Memory.CgroupLimitBytes))
	}
	if len(said) == 0 && e.Reason == "" {
		said = []string{"no limit"}
	}
	e.Understood = strings.Join(said, ", ")
}

// float is 0 for "max", "-1" and what is no number.
func float(s string) float64 {
	v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || v < 0 {
		return 0
	}
	return v
}

func ratio(quota, period float64) float64 {
	if quota == 0 || period == 0 {
		return 0
	}
	return quota / period
}

// smaller is the smaller of two limits, where 0 is no limit.
func smaller(a, b float64) float64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
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
