package doctor

import (
	"bytes"
	"encoding/xml"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/cgroup"
	"github.com/invar-ops/invar/internal/report"
	"github.com/invar-ops/invar/internal/run"
)

func TestCgroupLimits(t *testing.T) {
	t.Parallel()
	meminfo := map[string]string{"proc/meminfo": "MemTotal:       67108864 kB\nMemFree: 1 kB\nMemAvailable:   33554432 kB\n"}
	tests := []struct {
		name  string
		files map[string]string
		limit int64
		used  int64
		file  string
	}{
		{"version 2, nested", map[string]string{
			"proc/self/cgroup": "0::/kubepods/pod1/c1\n", "sys/fs/cgroup/kubepods/pod1/c1/memory.max": "max\n",
			"sys/fs/cgroup/kubepods/pod1/memory.max": "8589934592\n", "sys/fs/cgroup/kubepods/pod1/memory.current": "3221225472\n",
			"sys/fs/cgroup/kubepods/pod1/memory.stat": "anon 1\nfile 2\ninactive_file 1073741824\n",
		}, 8 << 30, 2 << 30, "/sys/fs/cgroup/kubepods/pod1/memory.max"},
		{"version 2, namespace of its own", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "4294967296\n", "sys/fs/cgroup/memory.current": "0\n"}, 4 << 30, 0, "/sys/fs/cgroup/memory.max"},
		{"version 1", map[string]string{
			"proc/self/cgroup": "9:name=systemd:/\n4:memory:/docker/abc\n0::/\n", "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "2147483648\n",
			"sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes": "1073741824\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 2 << 30, 1 << 30, "/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes"},
		{"version 1 in a container: the path of the host is not there", map[string]string{
			"proc/self/cgroup": "4:cpu,memory:/docker/abc\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "2147483648\n",
		}, 2 << 30, 0, "/sys/fs/cgroup/memory/memory.limit_in_bytes"},
		{"none", map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g := reader(t, with(meminfo, tt.files))
			l := g.memory(cgroup.Tightest(cgroup.Read(g.text)))
			if l.Cgroup != tt.limit || l.CgroupUsed != tt.used || l.CgroupFile != tt.file || l.Memory != 64<<30 || l.Available != 32<<30 {
				t.Errorf("got %+v", l)
			}
		})
	}
}

// judged is the judgement over facts that a test made up.
func judged(t *testing.T, name string, f Facts) Result {
	t.Helper()
	tg := target0(t, name)
	tg.Missing = nil
	return Judge(tg, f, loaded(t))
}

func TestJobs(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		limits  Limits
		max     string
		want    int
		status  report.Status
		expects []string
	}{
		{"memory of the cgroup decides", Limits{CPUs: 16, Memory: 256 << 30, Available: 200 << 30, Cgroup: 8 << 30, CgroupUsed: 2 << 30, CgroupFile: "/sys/fs/cgroup/memory.max"}, "16", 4, Warn, []string{"export MAX_JOBS=4", "6.0 GiB", "/sys/fs/cgroup/memory.max"}},
		{"processors decide", Limits{CPUs: 4, Memory: 256 << 30, Available: 200 << 30}, "", 4, report.Pass, nil},
		{"torch's default is too many", Limits{CPUs: 4, Memory: 8 << 30, Available: 6 << 30}, "", 4, Warn, []string{"CPUs + 2"}},
		{"a number that fits", Limits{CPUs: 16, Memory: 8 << 30, Available: 6 << 30}, "3", 4, report.Pass, nil},
		{"not enough for one", Limits{CPUs: 4, Memory: 2 << 30, Available: 1 << 30}, "1", 1, report.Fail, []string{"more memory"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := judged(t, "ascend910b", Facts{Live: true, Limits: tt.limits, HeldEnv: map[string]string{"MAX_JOBS": tt.max}})
			expect(t, r, "jobs", tt.status, tt.expects...)
			if r.Jobs.Recommended != tt.want {
				t.Errorf("recommended %d (%s), want %d", r.Jobs.Recommended, r.Jobs.How, tt.want)
			}
		})
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	tests := []struct {
		place  Place
		id     string
		status report.Status
		part   string
	}{
		{Place{Use: "tmp", Path: "/tmp", Free: 50e9, Mount: "/tmp", Options: "rw,nosuid,noexec"}, "tmp-mount", Warn, "TMPDIR"},
		{Place{Use: "tmp", Path: "/tmp", Free: 1e6, Mount: "/", Options: "rw"}, "tmp-space", report.Fail, "1 MB free"},
		{Place{Use: "prefix", Path: "/opt/invar", Free: 50e9, Mount: "/opt", Options: "ro,relatime"}, "prefix-mount", report.Fail, "read-only"},
		{Place{Use: "prefix", Path: "/opt/invar", Free: 50e9, Mount: "/opt", Options: "rw,noexec"}, "prefix-mount", report.Fail, "noexec"},
		{Place{Use: "prefix", Path: "/opt/invar", Free: 50e9, Options: "rw", Error: "/opt cannot be written by this user"}, "prefix-mount", report.Fail, "--prefix"},
		{Place{Use: "prefix", Path: "/opt/invar", Free: 2e9, Mount: "/", Options: "rw"}, "prefix-space", report.Fail, "5.4 GB"},
	}
	for _, tt := range tests {
		expect(t, judged(t, "cpu", Facts{Live: true, Places: []Place{tt.place}}), tt.id, tt.status, tt.part)
	}
	absent(t, judged(t, "cpu", Facts{Live: true, Places: []Place{{Use: "tmp", Path: "/tmp", Free: 50e9, Options: "rw"}}}), "tmp-mount", "tmp-space")
}

func TestMountinfo(t *testing.T) {
	t.Parallel()
	mounts := parseMounts("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n" +
		"30 27 0:9 / /tmp rw,nosuid,noexec shared:5 master:1 - tmpfs tmpfs rw\n" +
		"31 27 0:9 / /mnt/with\\040blank rw - tmpfs tmpfs rw\nbroken line\n")
	for p, want := range map[string]string{"/tmp/x": "/tmp", "/tmpfiles": "/", "/mnt/with blank/a": "/mnt/with blank", "/": "/"} {
		if m := mountOf(mounts, p); m.point != want {
			t.Errorf("%s is on %s, want %s", p, m.point, want)
		}
	}
	if m := mountOf(mounts, "/tmp"); !strings.Contains(m.options, "noexec") || m.kind != "tmpfs" {
		t.Errorf("/tmp: %+v", m)
	}
}

func nodes(kind string, names ...string) map[string]Node {
	out := map[string]Node{}
	for _, n := range names {
		out[n] = Node{Kind: kind, Mode: fs.ModeDevice | 0o660, GID: 1000}
	}
	return out
}

func joined(all ...map[string]Node) map[string]Node {
	out := map[string]Node{}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// On a host the flags are made of what is really there.
func TestDockerFlagsOfAHost(t *testing.T) {
	t.Parallel()
	paths := joined(
		nodes("char", "/dev/davinci0", "/dev/davinci1", "/dev/davinci10", "/dev/davinci2", "/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"),
		nodes("dir", "/usr/local/dcmi", "/usr/local/Ascend/driver/lib64", "/etc/ascend_install.info"),
		nodes("file", "/usr/local/sbin/npu-smi", "/usr/local/Ascend/driver/version.info"),
	)
	r := judged(t, "ascend910b", Facts{Live: true, Paths: paths})
	cmd := r.Container.Command("IMAGE")
	for _, part := range []string{"--device=/dev/davinci2 --device=/dev/davinci10", "--device=/dev/devmm_svm", "-v /usr/local/sbin/npu-smi:/usr/local/sbin/npu-smi:ro", "--shm-size=1g"} {
		if !strings.Contains(cmd, part) {
			t.Errorf("%q lacks %q", cmd, part)
		}
	}
	if strings.Contains(cmd, "ascend_install.info") || strings.Contains(cmd, "hccn") {
		t.Errorf("%q passes what the host has not", cmd)
	}
	if len(r.Container.Missing) != 1 || !strings.Contains(r.Container.Missing[0], "ascend_install.info is a dir, want a file") {
		t.Errorf("missing = %v", r.Container.Missing)
	}

	r = judged(t, "ascend950", Facts{Live: true, Paths: joined(nodes("char", "/dev/davinci0", "/dev/davinci_manager", "/dev/hisi_hdc"), nodes("dir", "/dev/uburma", "/dev/ummu"))})
	if cmd := r.Container.Command("IMAGE"); strings.Contains(cmd, "devmm_svm") || !strings.Contains(cmd, "--device=/dev/uburma") || !strings.Contains(cmd, "--pid=host") {
		t.Errorf("950: %s", cmd)
	}
	r = judged(t, "cuda", Facts{Live: true, Paths: nodes("char", "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm")})
	if cmd := r.Container.Command("IMAGE"); !strings.HasPrefix(cmd, "docker run --rm -it --gpus=all") || len(r.Container.Missing) != 1 {
		t.Errorf("cuda: %s, missing %v", cmd, r.Container.Missing)
	}
}

func TestInsideAContainer(t *testing.T) {
	t.Parallel()
	f := Facts{Live: true, Container: "/.dockerenv", Paths: joined(nodes("char", "/dev/davinci0", "/dev/hisi_hdc"), nodes("dir", "/etc/ascend_install.info", "/dev/devmm_svm")), Limits: Limits{SharedBytes: 64 << 20}}
	f.Paths["/dev/davinci0"] = Node{Kind: "char", Mode: 0o660, GID: 1000, Access: "permission denied"}
	r := judged(t, "ascend910b", f)
	expect(t, r, "container-access", Warn, "permission denied", "--group-add 1000", "HwHiAiUser")
	expect(t, r, "container-shm", Warn, "--shm-size")
	var text strings.Builder
	for _, x := range r.Findings {
		text.WriteString(x.Name + ": " + x.Got + "; " + x.Hint + "\n")
	}
	for _, part := range []string{"/dev/davinci_manager: missing", "/dev/devmm_svm: a dir", "/etc/ascend_install.info: a dir", "-v /usr/local/Ascend/driver/lib64"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("lacks %q:\n%s", part, text.String())
		}
	}
	// A container that was given no device is a build container: no complaint.
	r = judged(t, "ascend910b", Facts{Live: true, Container: "/.dockerenv"})
	for _, x := range r.Findings {
		if x.Group == "container" {
			t.Errorf("%s: %s", x.Name, x.Got)
		}
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	dir := build(t, map[string]string{
		"setup.py": "", "build.sh": "#!/bin/bash\r\necho\r\n", "sub/run.sh": "#!/bin/bash\nset -euo pipefail\n# comment\nsource /usr/local/Ascend/ascend-toolkit/set_env.sh\n",
		"sub/good.sh":          "#!/bin/bash\nset -eu\nset +u; source x/set_env.sh; set -u\n",
		"build/CMakeCache.txt": "Torch_DIR:PATH=/tmp/pip-build-env-abc/overlay/lib/torch\n",
		"pyproject.toml":       "[build-system]\nrequires = [\n  \"setuptools\",\n  \"torch==2.10.0\",\n]\n",
	})
	tg := target0(t, "ascend910b")
	f, err := Gather(t.Context(), tg, loaded(t), Options{Env: []string{"PATH=/nonexistent"}, Dir: dir, Runner: run.System{}})
	if err != nil {
		t.Fatal(err)
	}
	s := f.Scripts
	if strings.Join(s.CRLF, " ") != "build.sh" || strings.Join(s.Nounset, " ") != "sub/run.sh" || len(s.Overlays) != 1 || len(s.Isolated) != 1 {
		t.Errorf("%+v", s)
	}
	r := Judge(tg, f, loaded(t))
	expect(t, r, "crlf", report.Fail, `sed -i 's/\r$//' build.sh`)
	expect(t, r, "nounset", Warn, "sub/run.sh")
	expect(t, r, "cmake-overlay", report.Fail, "rm -r build")
	expect(t, r, "isolation", Warn, "--no-build-isolation")
}

func TestNounset(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"set -u\n. /a/set_env.sh\n":                         true,
		"#!/bin/bash -eu\nsource /a/set_env.sh\n":           true,
		"set -e; set -o nounset\nsource /a/set_env.sh\n":    true,
		"set -e\nset -o pipefail -u\nsource a/set_env.sh\n": true,
		"set -e\nsource /a/set_env.sh\nset -u\n":            false,
		"set -u\nset +u\nsource /a/set_env.sh\n":            false,
		"set -eu\nset +o nounset\nsource /a/set_env.sh\n":   false,
		"set -euo pipefail\necho set_env.sh\n":              false,
		"# set -u\nsource /a/set_env.sh\n":                  false,
	} {
		if got := sourcesUnderNounset(text); got != want {
			t.Errorf("%q = %t, want %t", text, got, want)
		}
	}
}

// On this very machine doctor finishes, starts no Python and says something.
func TestLive(t *testing.T) {
	t.Parallel()
	r, err := Run(t.Context(), target0(t, "cpu"), Options{Env: os.Environ(), Prefix: t.TempDir(), Runner: run.System{}})
	if err != nil {
		t.Fatal(err)
	}
	f := r.Facts
	if !f.Live || f.Arch == "" || f.Limits.CPUs == 0 || f.Limits.Memory == 0 || len(f.Places) < 2 || r.Jobs == nil {
		t.Errorf("facts are missing: %+v", f.Limits)
	}
	var b bytes.Buffer
	if err := WriteJUnit(&b, r); err != nil {
		t.Fatal(err)
	}
	var suites struct {
		Tests int `xml:"tests,attr"`
	}
	if err := xml.Unmarshal(b.Bytes(), &suites); err != nil || suites.Tests != len(r.Findings) {
		t.Errorf("JUnit: %d cases for %d findings, %v", suites.Tests, len(r.Findings), err)
	}
}

// fresh is data that a test may change.
func fresh(t *testing.T) *Data {
	t.Helper()
	d, err := decode()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDataIsStrict(t *testing.T) {
	t.Parallel()
	d := fresh(t)
	d.Needs[0].Kind = "no-such-judge"
	if d.check() == nil {
		t.Error("a kind without a judge was accepted")
	}
	d = fresh(t)
	d.Matrix.Rows[0].CANN = "nine"
	if d.check() == nil {
		t.Error("a CANN that is no version was accepted")
	}
	d = fresh(t)
	d.Environment[0].Source = ""
	if d.check() == nil {
		t.Error("a variable without a source was accepted")
	}
	for name := range map[string]bool{"matrix": true, "floors": true, "install": true, "needs": true, "families": true, "environment": true} {
		if _, err := files.ReadFile(filepath.Join("data", name+".yaml")); err != nil {
			t.Error(err)
		}
	}
}
