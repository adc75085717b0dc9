package host

import (
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/host/chip"
)

// read understands one answer of one source.
func read(t *testing.T, source, answer string) Facts {
	t.Helper()
	rules, err := chip.Load()
	if err != nil {
		t.Fatal(err)
	}
	return understand(rules, []Evidence{{Source: source, Answer: answer}})
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		cpus       float64
		memory     int64
	}{
		{"v2", "/sys/fs/cgroup/cpu.max: 150000 100000\n/sys/fs/cgroup/memory.max: 8589934592\n", 1.5, 8 << 30},
		{"v2, the cgroup above is smaller", "/sys/fs/cgroup/a/b/cpu.max: 800000 100000\n/sys/fs/cgroup/a/cpu.max: 200000 100000\n/sys/fs/cgroup/a/b/memory.max: max\n/sys/fs/cgroup/a/memory.max: 1073741824\n", 2, 1 << 30},
		{"v2, none", "/sys/fs/cgroup/cpu.max: max 100000\n/sys/fs/cgroup/memory.max: max\n", 0, 0},
		{"v1", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us: 400000\n/sys/fs/cgroup/cpu/cpu.cfs_period_us: 100000\n/sys/fs/cgroup/memory/memory.limit_in_bytes: 4294967296\n", 4, 4 << 30},
		{"v1, none", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us: -1\n/sys/fs/cgroup/cpu/cpu.cfs_period_us: 100000\n/sys/fs/cgroup/memory/memory.limit_in_bytes: 9223372036854771712\n", 0, 0},
		{"junk", "x\n/sys: y\ncpu.max: a b\n: \n", 0, 0},
	} {
		f := read(t, "cgroup", tt.text)
		if f.CPUQuota != tt.cpus || f.Memory.CgroupLimitBytes != tt.memory {
			t.Errorf("%s: got %g CPUs, %d bytes; want %g, %d", tt.name, f.CPUQuota, f.Memory.CgroupLimitBytes, tt.cpus, tt.memory)
		}
	}
}

func TestCPU(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, arch, vendor, levels string }{
		{"zen 5", "vendor_id: AuthenticAMD\nflags : fpu lm fma f16c avx2 avx512f avx512bw avx512dq avx512vl avx512_bf16", "x86_64", "AuthenticAMD", "baseline avx2 avx512"},
		{"haswell", "vendor_id: GenuineIntel\nflags : lm fma f16c avx2", "x86_64", "GenuineIntel", "baseline avx2"},
		{"avx512 without vl", "flags : lm fma f16c avx2 avx512f", "x86_64", "", "baseline avx2"},
		{"no avx2", "flags : lm sse2", "x86_64", "", "baseline"},
		{"32 bit", "flags : sse2", "", "", ""},
		{"kunpeng", "processor : 0\nFeatures : fp asimd evtstrm aes\nCPU implementer : 0x48\nCPU part : 0xd01", "aarch64", "HiSilicon", "baseline neon"},
		{"grace", "Features : fp asimd sve sve2 bf16\nCPU implementer : 0x41", "aarch64", "ARM", "baseline neon"},
		{"nothing", "", "", "", ""},
	} {
		c := read(t, "cpuinfo", tt.text).CPU
		if got := strings.Join(c.Levels, " "); c.Arch != tt.arch || c.Vendor != tt.vendor || got != tt.levels {
			t.Errorf("%s: got %q %q %q, want %q %q %q", tt.name, c.Arch, c.Vendor, got, tt.arch, tt.vendor, tt.levels)
		}
	}
}

func TestCountList(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{"": 0, "0": 1, "0-3": 4, "0-3,8,10-11": 7, "3-1": 0, "x": 0, "0-99999999999": 0} {
		if got := countList(in); got != want {
			t.Errorf("%q: got %d, want %d", in, got, want)
		}
	}
}

func TestSystemWords(t *testing.T) {
	t.Parallel()
	f := read(t, "libc", "loader: /lib64/ld-linux-x86-64.so.2\nglibc: 2.36\n")
	if f.OS.Libc != "glibc" || f.OS.LibcVersion != "2.36" || f.CPU.Arch != "x86_64" {
		t.Errorf("glibc: %+v %+v", f.OS, f.CPU)
	}
	if f = read(t, "libc", "loader: /lib/ld-musl-aarch64.so.1\nmusl: 1.2.5\n"); f.OS.Libc != "musl" || f.CPU.Arch != "aarch64" {
		t.Errorf("musl: %+v %+v", f.OS, f.CPU)
	}
	if f = read(t, "os-release", "ID=openEuler\nVERSION_ID=\"24.03\"\nPRETTY_NAME=\"openEuler 24.03 (LTS)\"\n"); f.OS.ID != "openEuler" || f.OS.Version != "24.03" {
		t.Errorf("os: %+v", f.OS)
	}
	for text, want := range map[string]string{"file: /.dockerenv\nroot: overlay\n": "docker", "env: KUBERNETES_SERVICE_HOST\nroot: overlay\n": "kubernetes", "": "", "env: WSL_DISTRO_NAME\n": "wsl"} {
		if f := read(t, "container", text); f.Container.Kind != want || f.Container.In != (want == "docker" || want == "kubernetes") {
			t.Errorf("container %q: %+v", text, f.Container)
		}
	}
}
