package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
)

const cudaHome = "usr/local/cuda-12.8/"

// toolkit128 is a system toolkit 12.8 whose header takes gcc up to 14.
func toolkit128() map[string]string {
	return map[string]string{
		"usr/local/cuda":           "->/usr/local/cuda-12.8",
		cudaHome + "bin/nvcc":      "+x",
		cudaHome + "nvvm/bin/cicc": "+x",
		cudaHome + "version.json":  `{"cuda":{"name":"CUDA SDK","version":"12.8.1"},"cuda_nvcc":{"name":"CUDA NVCC","version":"12.8.93"}}`,
		cudaHome + "include":       "->targets/x86_64-linux/include",
		cudaHome + "targets/x86_64-linux/include/crt/host_config.h": "#if __GNUC__ > 14\n#error -- unsupported GNU version! gcc versions later than 14 are not supported!\n#endif\n",
		cudaHome + "targets/x86_64-linux/include/cuda_runtime.h":    "",
		cudaHome + "targets/x86_64-linux/lib/libcudart.so.12":       "",
		cudaHome + "targets/x86_64-linux/lib/libcudart.so":          "->libcudart.so.12",
	}
}

func hopper(o *Options) { o.SoCs = []string{"sm_90"} }

func TestCUDARoots(t *testing.T) {
	t.Parallel()
	base := with(debian(), python311(), gcc("12"))
	r := examine(t, "cuda", with(base, toolkit128(), torch("2.11.0+cu128", "12.8")), hopper)
	if err := r.Err(); err != nil {
		t.Errorf("a good root: %v: %v", err, r.ids(report.Fail))
	}
	expect(t, r, "nvcc", report.Pass, "12.8.93 at /usr/local/cuda/bin/nvcc")
	expect(t, r, "nvcc-arch", report.Pass)

	r = examine(t, "cuda", with(base, toolkit128(), torch("2.11.0+cu130", "13.0")), hopper)
	expect(t, r, "nvcc-torch", report.Fail, "nvcc 12.8.93", "13.0", "nvidia-cuda-nvcc==13.0.*")
	r = examine(t, "cuda", with(base, toolkit128(), torch("2.11.0+cu126", "12.6")), hopper)
	expect(t, r, "nvcc-torch", Warn, "cuda-toolkit-12-6")
	r = examine(t, "cuda", with(base, toolkit128(), torch("2.11.0+cpu", "")), hopper)
	expect(t, r, "nvcc-torch", report.Fail, "without CUDA")

	r = examine(t, "cuda", with(base, toolkit128(), torch("2.8.0+cu128", "12.8")), func(o *Options) { o.SoCs = []string{"sm_103"} })
	expect(t, r, "nvcc-arch", report.Fail, "compute_103", "12.9")
	r = examine(t, "cuda", with(base, toolkit128(), torch("2.8.0+cu128", "12.8")), func(o *Options) { o.SoCs = []string{"sm_110"} })
	expect(t, r, "torch-arch", report.Fail, "no kernel image")
	r = examine(t, "cuda", with(base, toolkit128(), torch("2.11.0+cu128", "12.8")), func(o *Options) { o.SoCs = []string{"sm_300"} })
	expect(t, r, "nvcc-arch", report.Unclear)
	if code := report.ExitCode(r.Err()); code != report.Inconclusive {
		t.Errorf("exit code %d, want 6", code)
	}
}

func TestArchList(t *testing.T) {
	t.Parallel()
	base := with(debian(), python311(), gcc("12"), toolkit128(), torch("2.11.0+cu128", "12.8"))
	expect(t, examine(t, "cuda", base, env("TORCH_CUDA_ARCH_LIST=9.0;12.1+PTX Hopper")), "nvcc-arch", report.Fail, "compute_121", "12.9")
	absent(t, examine(t, "cuda", base, env("TORCH_CUDA_ARCH_LIST=8.0 9.0a 12.0+PTX")), "nvcc-arch")
	expect(t, examine(t, "cuda", base, env("TORCH_CUDA_ARCH_LIST=nine,sm_103 Hopper")), "nvcc-arch", report.Fail, "compute_103", "12.9")
}

func TestHostCompilerOfNVCC(t *testing.T) {
	t.Parallel()
	base := with(debian(), python311(), toolkit128(), torch("2.11.0+cu128", "12.8"))
	expect(t, examine(t, "cuda", with(base, gcc("14"))), "nvcc-compiler", report.Pass)
	expect(t, examine(t, "cuda", with(base, gcc("15"))), "nvcc-compiler", report.Fail, "gcc < 15", "CXX=g++-14", "apt-get install -y g++-14")
	// Without the header the table decides; with another limit both are shown.
	bare := with(base, gcc("15"))
	delete(bare, cudaHome+"targets/x86_64-linux/include/crt/host_config.h")
	expect(t, examine(t, "cuda", bare), "nvcc-compiler", report.Fail, "< 15")
	other := with(base, gcc("13"), map[string]string{cudaHome + "targets/x86_64-linux/include/crt/host_config.h": "#error -- unsupported GNU version! gcc versions later than 12 are not supported!\n"})
	r := examine(t, "cuda", other)
	expect(t, r, "references", Warn, "gcc < 13", "< 15")
	expect(t, r, "nvcc-compiler", report.Fail, "CXX=g++-12")
}

func TestCompilerFromWheels(t *testing.T) {
	t.Parallel()
	cu13 := site + "nvidia/cu13/"
	parts := map[string]string{
		cu13 + "include/cuda_runtime.h": "", cu13 + "include/cuda_runtime_api.h": "#define CUDART_VERSION  13020\n", cu13 + "lib/libcudart.so.13": "",
	}
	base := with(debian(), python311(), gcc("12"), torch("2.15.0+cu132", "13.2"), parts)
	r := examine(t, "cuda", base)
	expect(t, r, "nvcc", report.Fail, "nvidia-cuda-nvcc==13.2.*")
	expect(t, r, "cudart-link", Warn, "dist-packages/nvidia/cu13/lib/libcudart.so.13", "makes a folder of links")
	r = examine(t, "cuda", with(base, map[string]string{cu13 + "bin/nvcc": "+x"}))
	expect(t, r, "nvcc-parts", report.Fail, "nvvm/bin/cicc", "crt/host_config.h")
	r = examine(t, "cuda", with(base, map[string]string{cu13 + "bin/nvcc": "+x", cu13 + "nvvm/bin/cicc": "+x", cu13 + "include/crt/host_config.h": ""}))
	expect(t, r, "nvcc-parts", report.Pass)
	expect(t, r, "nvcc-torch", report.Pass)
	// No hint writes into the user's Python.
	for _, f := range examine(t, "cuda", base).Findings {
		if strings.Contains(f.Hint, "nvidia-cuda-nvcc") && (strings.Contains(f.Hint, "pip install") || !strings.Contains(f.Hint, "invar build cuda --install-toolkit")) {
			t.Errorf("%s: %s", f.ID, f.Hint)
		}
	}
	own := "opt/invar/cuda/13.2/lib/python3.11/site-packages/nvidia/cu13/"
	r = examine(t, "cuda", with(base, map[string]string{
		own + "bin/nvcc": "+x", own + "nvvm/bin/cicc": "+x", own + "include/crt/host_config.h": "", own + "include/cuda_runtime.h": "",
		own + "include/cuda_runtime_api.h": "#define CUDART_VERSION  13020\n",
	}))
	expect(t, r, "nvcc", report.Pass, "13.2 at /opt/invar/cuda/13.2/", "invar's own")
	expect(t, r, "nvcc-parts", report.Pass)
}

func TestDriverAgainstCUDA(t *testing.T) {
	t.Parallel()
	base := with(debian(), python311(), gcc("12"), toolkit128(), torch("2.11.0+cu130", "13.0"))
	driver := func(v string) map[string]string {
		return map[string]string{
			"proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  " + v + "  Release Build  (dvs-builder@host)  Tue Jan\nGCC version:  gcc version 12\n",
		}
	}
	expect(t, examine(t, "cuda", with(base, driver("550.54.15"))), "nvidia-driver", Warn, ">= 580", "550.54.15")
	expect(t, examine(t, "cuda", with(base, driver("580.65.06"))), "nvidia-driver", report.Pass)

	// The runtime in the operators is that of the toolkit, not that of torch.
	old := with(debian(), python311(), gcc("12"), torch("2.10.0+cu128", "12.8"), driver("570.148.08"))
	expect(t, examine(t, "cuda", with(old, toolkit128())), "nvidia-driver", report.Pass, ">= 525.60.13", "torch")
	newer := with(old, map[string]string{
		"opt/cuda/bin/nvcc": "+x", "opt/cuda/version.json": `{"cuda_nvcc":{"version":"13.2.86"}}`,
	})
	expect(t, examine(t, "cuda", newer, env("CUDA_HOME=/opt/cuda")), "nvidia-driver", Warn, ">= 580", "570.148.08", "nvcc at /opt/cuda/bin/nvcc")
	installed := with(old, toolkit128(), map[string]string{
		"opt/invar/env/a/gen/1/receipt.json": `{"run_package":{"name":"invar-ops-cuda13.2-1.0.0-linux.x86_64.run"}}`,
		"opt/invar/env/a/current":            "->gen/1",
		"opt/invar/env/b/current":            "->nowhere",
	})
	expect(t, examine(t, "cuda", installed), "nvidia-driver", Warn, ">= 580", "13.2 of the installed operators")
	expect(t, examine(t, "cuda", with(installed, driver("595.10"))), "nvidia-driver", report.Pass)
	r := examine(t, "cuda", with(base, driver("580.65.06"), map[string]string{"usr/lib/x86_64-linux-gnu/libcuda.so.570.148.08": ""}))
	expect(t, r, "driver-parts", Warn, "580.65.06", "570.148.08")
}

func TestToolkitTable(t *testing.T) {
	t.Parallel()
	c := loaded(t).CUDA
	for _, tt := range []struct {
		version string
		arch    int
		want    bool
	}{
		{"11.7", 89, false},
		{"11.8", 89, true},
		{"11.8", 35, false},
		{"12.0", 90, true},
		{"12.8", 120, true},
		{"12.8", 121, false},
		{"12.9", 121, true},
		{"12.9", 70, true},
		{"13.0", 70, false},
		{"13.0", 75, true},
		{"13.0", 101, false},
		{"13.0", 110, true},
		{"13.1", 110, true},
		{"13.2.86", 107, false},
		{"13.5.37", 107, true},
	} {
		f, ok := c.Toolkit(tt.version)
		if got := slices.Contains(f.Arches, tt.arch); !ok || got != tt.want {
			t.Errorf("CUDA %s compiles sm_%d = %t, want %t (%v)", tt.version, tt.arch, got, tt.want, f.Arches)
		}
	}
	if _, ok := c.Toolkit("9.2"); ok {
		t.Error("9.2 is older than everything that is listed")
	}
	if f, _ := c.Toolkit("13.9"); f.Exact || f.Version != "13.5" {
		t.Errorf("13.9 is judged by %s, exact %t", f.Version, f.Exact)
	}
}
