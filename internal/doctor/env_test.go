package doctor

import (
	"os"
	"strings"
	"testing"

	"github.com/invar-ops/invar/internal/report"
)

// env gives processes below the root an environment.
func env(kv ...string) func(*Options) {
	return func(o *Options) { o.RootEnv = append([]string{}, kv...) }
}

const sourced = "/usr/local/Ascend/cann-9.1.0"

// good is the environment after set_env.sh.
func good(more ...string) func(*Options) {
	return env(append([]string{
		"ASCEND_HOME_PATH=" + sourced, "ASCEND_TOOLKIT_HOME=" + sourced, "ASCEND_OPP_PATH=" + sourced + "/opp",
		"LD_LIBRARY_PATH=" + sourced + "/lib64:/usr/local/Ascend/driver/lib64/driver",
	}, more...)...)
}

func ascendRoot() map[string]string {
	return with(debian(), ascendPython(), gcc("12"), cannTree("9.1.0"), torch("2.10.0", ""), dist("torch-npu", "2.10.0.post4"), map[string]string{
		"usr/local/Ascend/cann-9.1.0/opp/version.info":                "Version=9.1.0\n",
		"usr/local/Ascend/driver/version.info":                        "Version=25.5.1\n",
		"usr/local/Ascend/driver/lib64/driver/libascend_hal.so":       "x",
		"usr/local/Ascend/ascend-toolkit/latest":                      "->/usr/local/Ascend/cann-9.1.0",
		"usr/local/Ascend/nnae/8.2.RC1/compiler/version.info":         "version_dir=8.2.RC1\n",
		"usr/local/Ascend/ascend-toolkit/8.5.1/compiler/version.info": "version_dir=8.5.1\n",
	})
}

func TestAscendEnvironment(t *testing.T) {
	t.Parallel()
	r := examine(t, "ascend910b", ascendRoot(), good())
	absent(t, r, "set-env", "set-env-half", "cann-path", "cann-nnae", "cann-mixed", "no-driver", "atb-abi", "torch-cuda", "npu-driver")
	if err := r.Err(); err != nil {
		t.Errorf("a good environment: %v: %v", err, r.ids(report.Fail))
	}
	tests := []struct {
		name   string
		env    func(*Options)
		id     string
		status report.Status
		parts  []string
	}{
		{"not sourced", env("PATH=/usr/bin"), "set-env", Warn, []string{"libhccl.so", "source /usr/local/Ascend/cann-9.1.0/set_env.sh"}},
		{"half sourced", env("ASCEND_TOOLKIT_HOME=" + sourced), "set-env-half", Warn, []string{"ASCEND_OPP_PATH", "set +u"}},
		{"nounset exported", good("SHELLOPTS=braceexpand:hashall:nounset"), "set-env-nounset", Warn, nil},
		{"nnae", env("ASCEND_HOME_PATH=/usr/local/Ascend/nnae/8.2.RC1"), "cann-nnae", report.Fail, []string{"nnae", "toolkit"}},
		{"gone", env("ASCEND_HOME_PATH=/usr/local/Ascend/cann-8.0.0"), "cann-path", report.Fail, []string{"does not exist"}},
		{"another CANN on the path", good("PATH=/usr/bin:/usr/local/Ascend/ascend-toolkit/8.5.1/bin"), "cann-mixed", Warn, []string{"8.5.1", "cann-9.1.0"}},
		{"old ABI first", good("LD_LIBRARY_PATH=/usr/local/Ascend/nnal/atb/latest/atb/cxx_abi_0/lib:/usr/local/Ascend/nnal/atb/latest/atb/cxx_abi_1/lib"), "atb-abi", report.Fail, []string{"cxx_abi_0", "--cxx_abi=1"}},
		{"SOC_VERSION in capitals", good("SOC_VERSION=Ascend910B1"), "env-soc-version", Warn, []string{"lower case"}},
		{"SOC_VERSION alias", good("SOC_VERSION=910b"), "env-soc-version", Warn, nil},
		{"kernels off", good("COMPILE_CUSTOM_KERNELS=true"), "env-compile-kernels", Warn, []string{"ValueError"}},
		{"base image", good("LCCL_DETERMINISTIC=0"), "env-lccl", Warn, []string{"=1"}},
		{"base image shuffle", good("ATB_MATMUL_SHUFFLE_K_ENABLE=1"), "env-atb-shuffle", Warn, nil},
		{"overlay", good("PYTHONPATH=/tmp/pip-build-env-x1/overlay/lib/python3.11/site-packages"), "pip-overlay", report.Fail, []string{"--no-build-isolation"}},
		{"certificates", good("SSL_CERT_FILE=/etc/ssl/gone.pem"), "ca-file", report.Fail, []string{"/etc/ssl/gone.pem"}},
		{"proxy without a scheme", good("https_proxy=proxy.example:3128"), "proxy-form", report.Fail, nil},
		{"two proxies", good("http_proxy=http://a:1", "HTTP_PROXY=http://b:1", "no_proxy=localhost"), "proxy-two", Warn, nil},
		{"proxy for everything", good("http_proxy=http://a:1"), "no-proxy", Warn, []string{"localhost"}},
		{"custom path to vendors", good("ASCEND_CUSTOM_OPP_PATH=/usr/local/Ascend/cann-9.1.0/opp/vendors"), "vendor-empty", Warn, nil},
		{"driver left out", good("ASCEND_RUNTIME_OPTIONS=NODRV"), "env-nodrv", Warn, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			expect(t, examine(t, "ascend910b", ascendRoot(), tt.env), tt.id, tt.status, tt.parts...)
		})
	}
}

func TestAscendWithoutADriver(t *testing.T) {
	t.Parallel()
	root := ascendRoot()
	delete(root, "usr/local/Ascend/driver/version.info")
	delete(root, "usr/local/Ascend/driver/lib64/driver/libascend_hal.so")
	r := examine(t, "ascend910b", root, good())
	expect(t, r, "no-driver", Warn, "devlib", "TORCH_DEVICE_BACKEND_AUTOLOAD=0", "/usr/local/Ascend/cann-9.1.0/x86_64-linux/devlib")
	if r.Err() != nil {
		t.Errorf("a builder without NPU is good for a build: %v", r.ids(report.Fail))
	}
	r = examine(t, "ascend910b", root, good("TORCH_DEVICE_BACKEND_AUTOLOAD=0", "LD_LIBRARY_PATH="+sourced+"/lib64:"+sourced+"/x86_64-linux/devlib"))
	absent(t, r, "no-driver")
}

func TestFirmware(t *testing.T) {
	t.Parallel()
	root := with(ascendRoot(), map[string]string{"usr/local/Ascend/driver/version.info": "Version=25.5.1\ncompatible_version_fw=[7.0.0,8.9.9]\n"})
	r := examine(t, "ascend910b", with(root, map[string]string{"usr/local/Ascend/firmware/version.info": "Version=6.4.0.4.220\n"}), good())
	expect(t, r, "firmware", Warn, "[7.0.0,8.9.9]", "6.4.0.4.220")
	r = examine(t, "ascend910b", with(root, map[string]string{"usr/local/Ascend/firmware/version.info": "Version=7.7.0.1.231\n"}), good())
	expect(t, r, "firmware", report.Pass)
}

func TestTorchWithCUDABesideNPU(t *testing.T) {
	t.Parallel()
	root := with(ascendRoot(), torch("2.10.0", "12.8"))
	expect(t, examine(t, "ascend910b", root, good()), "torch-cuda", report.Fail, "12.8", "torch==2.10.0+cpu", "pinned_reserve_segment_size_mb")
	older := with(ascendRoot(), torch("2.9.0", "12.8"), dist("torch-npu", "2.9.0.post9"))
	delete(older, site+"torch_npu-2.10.0.post4.dist-info/METADATA")
	delete(older, site+"torch-2.10.0.dist-info/WHEEL")
	delete(older, site+"torch-2.10.0.dist-info/METADATA")
	expect(t, examine(t, "ascend910b", older, good()), "torch-cuda", Warn, "2.9.0.post9 works with it")
}

func TestVendors(t *testing.T) {
	t.Parallel()
	v := "usr/local/Ascend/cann-9.1.0/opp/vendors/"
	lib := "/op_api/lib/libcust_opapi.so"
	two := with(ascendRoot(), map[string]string{v + "custom_transformer" + lib: "x", v + "batch_invariant" + lib: "x"})
	r := examine(t, "ascend910b", with(two, map[string]string{v + "config.ini": "load_priority=custom_transformer,batch_invariant\n"}), good())
	expect(t, r, "vendor-several", Warn, "custom_transformer, batch_invariant")
	r = examine(t, "ascend910b", with(two, map[string]string{v + "config.ini": "load_priority = batch_invariant\n"}), good())
	expect(t, r, "vendor-unlisted", Warn, "batch_invariant")
	r = examine(t, "ascend910b", with(two, map[string]string{v + "config.ini": "load_priority=custom_transformer\n"}), good("ASCEND_CUSTOM_OPP_PATH=/"+v+"batch_invariant"))
	expect(t, r, "vendor-several", Warn, "batch_invariant, custom_transformer")
}

// The recorded environment of two ATB ABIs: the first is right, the rest is left over.
func TestRecordedATB(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/19-env-atb-two-abis.txt")
	if err != nil {
		t.Fatal(err)
	}
	root := with(ascendRoot(), map[string]string{"usr/local/Ascend/nnal/atb/latest/atb/cxx_abi_1/lib/libatb.so": ""})
	r := examine(t, "ascend910b", root, env(append(strings.Split(strings.TrimSpace(string(b)), "\n"), "ASCEND_HOME_PATH="+sourced)...))
	expect(t, r, "atb-abi-leftover", Warn, "cxx_abi_1 comes first and is right")
	absent(t, r, "atb-abi")
}

func TestBrokenCANNLink(t *testing.T) {
	t.Parallel()
	root := with(ascendRoot(), map[string]string{"usr/local/Ascend/cann": "->cann-9.9.9"})
	r := examine(t, "ascend910b", root, good("ASCEND_HOME_PATH=/usr/local/Ascend/cann"))
	expect(t, r, "cann-link", Warn, "/usr/local/Ascend/cann-9.9.9")
	expect(t, r, "cann-path", report.Fail, "a link to /usr/local/Ascend/cann-9.9.9")
}

func TestConda(t *testing.T) {
	t.Parallel()
	root := with(debian(), python311(), gcc("12"), torch("2.10.0", ""), map[string]string{"opt/conda/lib/libstdc++.so.6": "\x00GLIBCXX_3.4.26\x00"})
	expect(t, examine(t, "cpu", root, env("LD_LIBRARY_PATH=/opt/conda/lib")), "libstdcxx-path", Warn, "3.4.26", "3.4.30")
}

func TestCUDAHome(t *testing.T) {
	t.Parallel()
	root := with(debian(), python311(), gcc("12"), toolkit128(), torch("2.11.0+cu128", "12.8"), map[string]string{"opt/cuda/lib64/libcudart.so.12": ""})
	expect(t, examine(t, "cuda", root, env("CUDA_HOME=/opt/cuda")), "cuda-home", report.Fail, "/opt/cuda has none")
	absent(t, examine(t, "cuda", root, env("CUDA_HOME=/usr/local/cuda-12.8/", "CUDA_PATH=/usr/local/cuda")), "cuda-home")
	expect(t, examine(t, "cuda", root, env("CUDA_PATH=/nowhere")), "cuda-home", report.Fail, "/nowhere has none")
	expect(t, examine(t, "cuda", root, env("CUDA_VISIBLE_DEVICES=-1")), "env-visible", Warn)
}

func TestVariablesOfNoHarm(t *testing.T) {
	t.Parallel()
	r := examine(t, "ascend910b", ascendRoot(), good("SOC_VERSION=ascend910b4-1", "COMPILE_CUSTOM_KERNELS=1", "VLLM_BATCH_INVARIANT=1", "MAX_JOBS=4", "LCCL_DETERMINISTIC=1"))
	for _, f := range r.Findings {
		if strings.HasPrefix(f.ID, "env-") {
			t.Errorf("%s: %s", f.ID, f.Got)
		}
	}
}
