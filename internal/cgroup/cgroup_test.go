package cgroup

import (
	"slices"
	"testing"
)

// from reads files out of a map.
func from(files map[string]string) Reader { return func(p string) string { return files[p] } }

func TestLimits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  Limits
		used  int64
	}{
		{"none", map[string]string{"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "max 100000\n", "/sys/fs/cgroup/memory.max": "max\n"}, Limits{}, 0},
		{"the one above is tighter", map[string]string{
			"/proc/self/cgroup":                   "0::/a/b\n",
			"/sys/fs/cgroup/a/b/cpu.max":          "400000 100000\n",
			"/sys/fs/cgroup/a/cpu.max":            "150000 100000\n",
			"/sys/fs/cgroup/a/b/memory.max":       "4294967296\n",
			"/sys/fs/cgroup/a/memory.max":         "2147483648\n",
			"/sys/fs/cgroup/a/memory.current":     "1000000\n",
			"/sys/fs/cgroup/a/memory.stat":        "anon 1\ninactive_file 400000\n",
			"/sys/fs/cgroup/elsewhere/memory.max": "1\n",
		}, Limits{1.5, 2 << 30, "/sys/fs/cgroup/a/memory.max"}, 600_000},
		{"a container, whose path is another's", map[string]string{
			"/proc/self/cgroup": "0::/kubepods/pod1/c\n", "/sys/fs/cgroup/cpu.max": "50000 100000\n", "/sys/fs/cgroup/memory.max": "1048576\n",
		}, Limits{0.5, 1 << 20, "/sys/fs/cgroup/memory.max"}, 0},
		{"version 1", map[string]string{
			"/proc/self/cgroup":                              "3:cpu,cpuacct:/x\n2:memory:/x\n",
			"/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us":  "-1\n",
			"/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us": "100000\n",
			"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":    "300000\n",
			"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us":   "100000\n",
			"/sys/fs/cgroup/memory/memory.limit_in_bytes":    "9223372036854771712\n",
			"/sys/fs/cgroup/memory/x/memory.limit_in_bytes":  "8388608\n",
			"/sys/fs/cgroup/memory/x/memory.usage_in_bytes":  "4096\n",
			"/sys/fs/cgroup/memory/x/memory.stat":            "total_inactive_file 8192\n",
		}, Limits{3, 8 << 20, "/sys/fs/cgroup/memory/x/memory.limit_in_bytes"}, 0},
		{"hybrid", map[string]string{
			"/proc/self/cgroup": "4:memory:/\n0::/s\n", "/sys/fs/cgroup/unified/s/cpu.max": "200000 100000", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "5",
		}, Limits{2, 5, "/sys/fs/cgroup/memory/memory.limit_in_bytes"}, 0},
		{"nonsense", map[string]string{
			"/proc/self/cgroup": "x\n", "/sys/fs/cgroup/cpu.max": "a b", "/sys/fs/cgroup/memory.max": "-7",
		}, Limits{}, 0},
	} {
		read := from(tc.files)
		files := Read(read)
		got := Tightest(files)
		if got != tc.want {
			t.Errorf("%s: got %+v, want %+v", tc.name, got, tc.want)
		}
		if again := Parse(Text(files)); !slices.Equal(again, files) {
			t.Errorf("%s: written and read again: %v, want %v", tc.name, again, files)
		}
		if used := Used(read, got.MemoryFile); used != tc.used {
			t.Errorf("%s: %d bytes used, want %d", tc.name, used, tc.used)
		}
	}
}

func TestGroups(t *testing.T) {
	t.Parallel()
	const groups = "4:memory:/a/b\n3:cpu,cpuacct:/c\n0::/\n"
	for _, tt := range []struct{ controller, want string }{{"memory", "/a/b"}, {"cpu", "/c"}, {"", ""}, {"io", ""}} {
		if got := groupOf(groups, tt.controller); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.controller, got, tt.want)
		}
	}
	if got, want := ancestors("/a/b"), []string{"/a/b", "/a", ""}; !slices.Equal(got, want) {
		t.Errorf("ancestors: got %q, want %q", got, want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("/sys/fs/cgroup/cpu.max: 150000 100000\n/sys/fs/cgroup/memory.max: max\n")
	f.Fuzz(func(t *testing.T, text string) {
		l := Tightest(Parse(text))
		if l.CPUs < 0 || l.Memory < 0 || l.Memory > 0 && l.MemoryFile == "" {
			t.Errorf("%q gave %+v", text, l)
		}
	})
}
