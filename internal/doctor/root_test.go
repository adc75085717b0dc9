package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
)

// A bare Debian image names everything that each build would miss, with the
// command that installs it.
func TestBareDebianNamesEverything(t *testing.T) {
	t.Parallel()
	common := map[string]string{
		"c++":          "apt-get update && apt-get install -y g++",
		"python":       "apt-get install -y python3",
		"libc-headers": "apt-get install -y libc6-dev",
	}
	tests := []struct {
		target string
		also   map[string]string
		warn   []string
	}{
		{"cpu", map[string]string{"venv": "python3-venv"}, []string{"torch", "ca", "libstdcxx"}},
		{
			"cuda",
			map[string]string{"venv": "python3-venv", "nvcc": "nvidia-cuda-nvcc==13.2", "nvcc-parts": "nvidia-nvvm", "torch": "pip install 'torch>=2.10'"},
			[]string{"ca", "nvidia-driver", "gpu", "cudart-link"},
		},
		{"ascend910b", map[string]string{
			"cann": "Ascend-cann-910b-ops_9.1.0", "cann-headers": "Ascend-cann-toolkit_9.1.0", "torch": "torch==2.10.0+cpu torch-npu==2.10.0.post4",
			"pip": "python3-pip", "torch-npu": "mirrors.huaweicloud.com", "python-headers": "python3-dev", "setuptools": "setuptools", "wheel": "install wheel",
			"ninja": "install ninja", "numpy": "install numpy", "pyyaml": "install pyyaml", "matrix": "Ascend-cann-toolkit_9.1.0",
		}, []string{"ca", "npu-driver", "npu", "cann-compiler"}},
	}
	for _, tt := range tests {
		t.Run(tt.target, func(t *testing.T) {
			t.Parallel()
			r := examine(t, tt.target, debian())
			for id, hint := range with(common, tt.also) {
				expect(t, r, id, report.Fail, hint)
			}
			for _, id := range tt.warn {
				if !slices.Contains(r.ids(Warn), id) {
					t.Errorf("no warning %s: %v", id, r.ids(Warn))
				}
			}
			if code := report.ExitCode(r.Err()); code != report.Unmet {
				t.Errorf("exit code %d, want 3", code)
			}
			for _, part := range []string{"apt-get update && apt-get install -y g++", "libc6-dev", "python3", "ca-certificates"} {
				if !strings.Contains(r.Install, part) {
					t.Errorf("all at once: %q lacks %q", r.Install, part)
				}
			}
			absent(t, r, "arch", "glibc", "sh", "tar", "gzip")
		})
	}
}

func TestReadyCPURootPasses(t *testing.T) {
	t.Parallel()
	r := examine(t, "cpu", with(debian(), python311(), gcc("12"), torch("2.10.0", "")))
	if err := r.Err(); err != nil || r.Count(Warn) != 0 {
		t.Errorf("%v; warnings %v", err, r.ids(Warn))
	}
	expect(t, r, "c++", report.Pass, "gcc 12 at /usr/bin/c++")
	expect(t, r, "python", report.Pass, "3.11.2 at /usr/bin/python3")
	expect(t, r, "glibc", report.Pass, ">= 2.28", "2.36")
	expect(t, r, "libstdcxx", report.Pass, "GLIBCXX_3.4.24", "GLIBCXX_3.4.30")
}

func TestOtherSystemsGetTheirCommands(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ release, want string }{
		"openEuler":   {"ID=\"openEuler\"\nVERSION_ID=\"24.03\"\n", "dnf install -y gcc-c++"},
		"Kylin":       {"ID=kylin\n", "dnf install -y gcc-c++"},
		"by likeness": {"ID=mine\nID_LIKE=\"rhel fedora\"\n", "dnf install -y gcc-c++"},
		"Alpine":      {"ID=alpine\n", "apk add g++"},
		"unknown":     {"ID=mine\n", "apt-get install -y g++   or   dnf install -y gcc-c++"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := examine(t, "cpu", with(debian(), map[string]string{"etc/os-release": tt.release}))
			expect(t, r, "c++", report.Fail, tt.want)
		})
	}
}

func TestOldAndOtherCLibraries(t *testing.T) {
	t.Parallel()
	old := with(debian(), python311(), gcc("12"), torch("2.10.0", ""))
	old["usr/lib/x86_64-linux-gnu/libc.so.6"] = "GNU C Library (GNU libc) stable release version 2.17, by Roland McGrath et al.\n"
	expect(t, examine(t, "cpu", old), "glibc", report.Fail, ">= 2.28", "2.17")

	low := with(debian(), python311(), gcc("12"), torch("2.10.0", ""))
	low["usr/lib/x86_64-linux-gnu/libstdc++.so.6"] = "\x00GLIBCXX_3.4.19\x00"
	expect(t, examine(t, "cpu", low), "libstdcxx", report.Fail, "3.4.19", "GLIBCXX_3.4.24")

	r := examine(t, "cpu", map[string]string{"etc/os-release": "ID=alpine\n", "lib/ld-musl-x86_64.so.1": ""})
	expect(t, r, "glibc", report.Fail, "musl")

	r = examine(t, "cpu", map[string]string{"etc/os-release": "ID=debian\n"})
	expect(t, r, "arch", report.Unclear)
	if code := report.ExitCode(r.Err()); code != report.Unmet {
		t.Errorf("exit code %d, want 3: something fails beside what is unclear", code)
	}
}

func TestPythonOfARoot(t *testing.T) {
	t.Parallel()
	tree := with(debian(), python311(), gcc("12"))
	delete(tree, "usr/include/python3.11/Python.h")
	expect(t, examine(t, "ascend910b", tree), "python-headers", report.Fail, "/usr/include/python3.11/Python.h", "python3.11-dev")

	// openEuler: /usr/bin/python3 has no pip and the working one is elsewhere.
	other := "usr/local/python3.12.13/"
	tree = with(debian(), python311(), map[string]string{
		other + "bin/python3": "->python3.12", other + "bin/python3.12": "+x\x7fELF", other + "lib/python3.12/os.py": "",
		other + "lib/python3.12/site-packages/torch/version.py": "__version__ = '2.10.0'\ncuda = None\n", other + "lib/python3.12/site-packages/torch-2.10.0.dist-info/METADATA": "",
	})
	expect(t, examine(t, "cpu", tree), "torch", report.Pass, "2.10.0 in /usr/local/python3.12.13/lib/python3.12/site-packages")

	// A venv whose links point out of the root as seen from here.
	tree = with(debian(), python311(), map[string]string{
		"opt/venv/pyvenv.cfg": "home = /usr/bin\nversion = 3.11.2\n", "opt/venv/bin/python": "->/usr/bin/python3.11",
		"opt/venv/lib/python3.11/site-packages/x": "",
	})
	r := examine(t, "ascend910b", tree, func(o *Options) { o.Python = "/opt/venv" })
	expect(t, r, "python", report.Pass, "3.11.2 at /opt/venv/bin/python")
	expect(t, r, "python-headers", report.Pass, "/usr/include/python3.11/Python.h")

	tg := examine(t, "cpu", with(debian(), python311(), torch("2.10.0", ""), dist("torch", "2.9.0")))
	expect(t, tg, "dist-twice", report.Fail, "torch", "2.9.0")
	r = examine(t, "cpu", with(debian(), python311(), torch("1.11.0+cu113", ""), map[string]string{site + "torch/version.py": "__version__ = '2.2.0+cu121'\ncuda = '12.1'\n"}))
	expect(t, r, "torch-files", report.Fail, "1.11.0", "2.2.0+cu121")
}

func TestManagedPythonGetsAnEnvironment(t *testing.T) {
	t.Parallel()
	tree := with(debian(), python311(), gcc("12"), map[string]string{"usr/lib/python3.11/EXTERNALLY-MANAGED": "[externally-managed]\n"})
	r := examine(t, "ascend910b", tree)
	expect(t, r, "pip-managed", Warn, "EXTERNALLY-MANAGED")
	expect(t, r, "torch", report.Fail, "/usr/bin/python3 -m venv /opt/venv && /opt/venv/bin/python -m pip install torch==2.10.0+cpu")
}

func TestPipOfAnotherPython(t *testing.T) {
	t.Parallel()
	r := examine(t, "cpu", with(debian(), python311(), torch("2.10.0", ""), map[string]string{"usr/local/bin/pip": "+x#!/opt/conda/bin/python3.8\nimport sys\n"}))
	expect(t, r, "pip-other", Warn, "/opt/conda/bin/python3.8", "/usr/bin/python3 -m pip")
	r = examine(t, "cpu", with(debian(), python311(), torch("2.10.0", ""), map[string]string{"usr/bin/pip": "+x#!/usr/bin/python3.11\n"}))
	absent(t, r, "pip-other")
}

func TestRootThatIsNone(t *testing.T) {
	t.Parallel()
	d, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	r := Result{}
	_, err = Gather(t.Context(), target0(t, "cpu"), d, Options{Root: "/nowhere/at/all"})
	if report.ExitCode(err) != report.Usage {
		t.Errorf("exit code of %v, want 2", err)
	}
	if _, ok := errors.AsType[*report.UnmetError](r.Err()); ok {
		t.Error("a result without findings is not unmet")
	}
}
