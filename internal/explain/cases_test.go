package explain

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// answers are the right answers of the case base, as rules; a verdict in
// brackets where no cause may be named. Says are words that cause and fix must
// hold besides.
var answers = []struct {
	file, rule string
	says       []string
}{
	{"build/01-gcc12-reads-hcc-7.3-headers.log", "hcc-headers-leak", []string{"7.3.0", "CPLUS_INCLUDE_PATH"}},
	{"build/02-nnae-alpha-cce-half.log", "cann-compile-half", []string{"rope_custom_true_half", "/usr/local/Ascend/nnae/latest", "set_env.sh"}},
	{"build/04-no-cxx-compiler.log", "no-cxx-compiler", []string{"apt-get install gcc g++ cmake"}},
	{"build/05-npustream-h-not-found.log", "torch-npu-header-missing", []string{"torch_npu/csrc/core/npu/NPUStream.h", "--no-build-isolation"}},
	{"build/07-a3-no-obj-file.log", "kernel-objects-missing", []string{"SOC_VERSION", "ascend910_93"}},
	{"build/08-make-tail-without-cause.log", "[not-in-excerpt]", []string{"torch_binding.cpp.o", "above"}},
	{"build/10-torch-npu-dev-not-found.log", "ascend-index-missing", []string{"torch-npu==2.5.1.post1.dev20250619", "mirrors.huaweicloud.com"}},
	{"build/11-torch-npu-needs-plus-cpu.log", "torch-plus-cpu-conflict", []string{"torch==2.9.0+cpu", "download.pytorch.org/whl/cpu"}},
	{"build/13-broken-cann-symlink.log", "ascendc-cmake-missing", []string{"link", "readlink", "reinstall"}},
	{"build/14-cstdint-not-found.log", "cxx-standard-headers-missing", []string{"cstdint", "apt-get install g++", "libstdc++-devel", "no defect of CANN"}},
	{"build/16-run-install-path-create-failed.log", "install-folder-create-failed", []string{"<pkg>/opp_vendors/<TAG>", "mkdir -p"}},
	{"build/17-run-install-success.log", "[success]", nil},
	{"build/19-python-h-missing.log", "python-headers-missing", []string{"apt-get install python3.9-dev", "python3-devel"}},
	{"build/20-cmake-python-dev-module-missing.log", "python-headers-missing", []string{"python3.10-dev", "base interpreter"}},
	{"build/22-ssl-verify-nccl-download.log", "tls-certificate", []string{"github.com", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"}},
	{"build/23-submodule-clone-502.log", "http-error", []string{"502", "composable_kernel", "VLLM_FLASH_ATTN_SRC_DIR"}},
	{"build/25-cuda-129-vs-torch-cu130.log", "cuda-torch-mismatch", []string{"12.9", "13.0", "cuda-13.0"}},
	{"build/26-set-env-under-set-u.log", "unbound-variable-set-env", []string{"set +u", "CMAKE_PREFIX_PATH"}},
	{"build/28-oom-killed-status-9.log", "oom-compiler", []string{"MAX_JOBS", "cgroup"}},
	{"build/29-undefined-soc-version-case.log", "soc-version-case", []string{"lower", "Ascend910B1"}},
	{"build/31-expected-torch-version.log", "torch-version-expected", []string{"torch 2.8.0", "2.9.0+cpu", "torch==2.8.0"}},
	{"build/32-catlass-fetch-failed.log", "catlass-missing", []string{"catlass", "git submodule update --init --recursive", "gitcode.com/cann/catlass"}},
	{"build/34-crlf-in-scripts.log", "crlf-line-ends", []string{"sed -i", "autocrlf"}},
	{"build/35-wheel-no-source-for-platform-uv.log", "wheel-not-supported", []string{"torchaudio==2.6.0+cpu", "aarch64"}},
	{"build/37-torch-version-warning-then-copy-fail.log", "torch-version-expected", []string{"2.4.0", "2.6.0"}},
	{"build/38-910prob-ascendc-compile.log", "[not-in-excerpt]", []string{"ascendc_compiler", "first-generation"}},

	{"probe/01-libascend-hal-in-container.log", "ascend-driver-library-missing", []string{"/dev/davinci_manager", "/dev/dav_manager", "driver/lib64", "only hides it"}},
	{"probe/02-libhccl-not-found.log", "cann-library-missing", []string{"libhccl", "set_env.sh", ".bashrc"}},
	{"probe/04-libatb-not-found.log", "atb-library-missing", []string{"nnal/atb/set_env.sh"}},
	{"probe/05-no-module-torch-npu.log", "torch-npu-module-missing", []string{"torch-npu", "no sign of success"}},
	{"probe/07-soc-version-104.log", "first-generation-910", []string{"104", "no build option"}},
	{"probe/08-undefined-symbol-cxx11abi.log", "cxx11-abi-mismatch", []string{"_GLIBCXX_USE_CXX11_ABI=0", "2.7.1", "--no-build-isolation"}},
	{"probe/10-vllm-c-undefined-symbol-cuda.log", "cxx11-abi-mismatch", []string{"vllm/_C.abi3.so", "another torch"}},
	{"probe/11-vllm-c-parse-schema-symbol.log", "cxx11-abi-mismatch", []string{"same release"}},
	{"probe/13-glibc-232-centos7-masked.log", "extension-shadowed-old-glibc", []string{"2.17", "container", "outside the source"}},
	{"probe/14-glibcxx-3430-container.log", "libstdcxx-too-old", []string{"GLIBCXX_3.4.30", "GCC 12", "glibc is not", "storage_offload"}},
	{"probe/16-kernels-so-not-found.log", "ascend-kernels-library-missing", []string{"COMPILE_CUSTOM_KERNELS", "no matter of LD_LIBRARY_PATH"}},
	{"probe/17-weak-ref-tensor-missing.log", "operator-not-registered", []string{"weak_ref_tensor", "_C_ascend", "rebuild"}},
	{"probe/19-no-kernel-image-rtx5090.log", "no-kernel-image", []string{"TORCH_CUDA_ARCH_LIST", "driver is not at fault"}},
	{"probe/20-no-kernel-image-a100.log", "no-kernel-image", []string{"one extension", "one request does"}},
	{"probe/22-ptxas-sm120a.log", "ptx-version-too-old", []string{"sm_120a", "8.4", "triton"}},
	{"probe/23-v100-bfloat16.log", "bfloat16-unsupported", []string{"Tesla V100-SXM2-32GB", "7.0", "--dtype half"}},
	{"probe/25-aclgraph-function-spliced.log", "cann-function-missing", []string{"aclmdlRI", "pre-release", "--enforce-eager"}},
	{"probe/26-set-device-507033-opp.log", "opp-verify-failed", []string{"507033", "8.0.RC3.alpha001", "driver", "not specific"}},
	{"probe/28-aclnn-op-not-in-libopapi.log", "aclnn-op-not-found", []string{"aclnnAddRmsNormBias", "ASCEND_CUSTOM_OPP_PATH", "misleads"}},
	{"probe/29-ascend-transport-so.log", "mooncake-library-missing", []string{"/usr/local/lib", "LD_LIBRARY_PATH"}},
	{"probe/31-atc-libascend-hal.log", "ascend-driver-library-missing", []string{"devlib"}},

	{"docker/01-soc-version-cpu-only-builder.log", "soc-version-needed", []string{"ascend910b1", "--build-arg"}},
	{"docker/02-triton-ascend-no-matching.log", "ascend-index-missing", []string{"triton-ascend==3.2.1", "PIP_EXTRA_INDEX_URL=https://mirrors.huaweicloud.com/ascend/repos/pypi"}},
	{"docker/04-wheel-size-check-400mb.log", "wheel-too-large", []string{"824.73", "400", "VLLM_MAX_SIZE_MB", "_vllm_fa3_C.abi3.so"}},
	{"docker/05-cutlass-clone-tls.log", "tls-connection-cut", []string{"cutlass", "mirror", "cache mount"}},
	{"docker/07-copy-source-not-found.log", "copy-source-missing", []string{"/upstream/requirements/cpu-build.txt", "git submodule update --init", ".dockerignore"}},
	{"docker/08-oom-137-in-build.log", "oom-compiler", []string{"MAX_JOBS", "NVCC_THREADS=1"}},
	{"docker/10-runtime-hook-invalid-cuda-version.log", "nvidia-hook-failed", []string{"387", "nvidia-container-toolkit", "driver"}},
	{"docker/11-could-not-select-device-driver.log", "gpu-runtime-missing", []string{"gpu", "nvidia-ctk runtime configure", "not at fault"}},
	{"docker/13-dockerfile-cpu-exit-1-only.log", "[not-in-excerpt]", []string{"--progress=plain", "above"}},
	{"docker/14-registry-layer-invalid-tar.log", "layer-not-unpacked", []string{"docker save", "upgrade docker", "image itself is fine"}},

	// Server logs: those that failed, and those that only report numbers.
	{"serve/01-npu-v091-kv-then-fail.log", "[not-in-excerpt]", []string{"traceback"}},
	{"serve/02-npu-hybrid-ratio-mismatch-oom.log", "[not-in-excerpt]", []string{"traceback"}},
	{"serve/04-v1-2042016-tokens.log", "[success]", nil},
	{"serve/05-v1-model-loading-gib.log", "[success]", nil},
	{"serve/07-v0-229-blocks.log", "[success]", nil},
	{"serve/08-mtp-padding-layers.log", "[success]", nil},
	{"serve/10-v011-available-kv.log", "[success]", nil},
	{"serve/11-preemption-v0.log", "[nothing]", nil},
	{"serve/13-preemption-v1-resumed.log", "[success]", nil},
	{"serve/14-usage-lines-glued.log", "[success]", nil},
	{"serve/16-npu-no-memory-shared-card.log", "no-memory-for-kv-cache", []string{"another process", "FIRST instance", "is wrong"}},
	{"serve/17-npu-kv-cache-memory-hint.log", "[success]", nil},
	{"serve/19-fp8-max-len-estimate.log", "kv-cache-too-small", []string{"221000", "10.12 GiB", "5.59 GiB", "122080"}},
	{"serve/20-kv-needed-wrapped-line.log", "kv-cache-too-small", []string{"100000", "4.26 GiB", "4.25 GiB"}},
	{"serve/22-sglang-comparison.log", "[success]", nil},
	{"serve/29-bi-startup-no-attention-backend.log", "bi-attention-backend", []string{"--attention-backend FLASH_ATTN", "FLASHINFER was later found"}},
	{"serve/31-bi-ascend-ops-not-available.log", "bi-ops-not-available", []string{"NOT active", "triton-ascend"}},
	{"serve/32-tt-small-kv.log", "[success]", nil},

	// Commands, not logs: nothing in them failed.
	{"serve/23-lint-ascend-dspark-full-decode.txt", "[nothing]", nil},
	{"serve/25-lint-ascend-lora-script.txt", "[nothing]", nil},
	{"serve/26-lint-ascend-tp-equals.txt", "[nothing]", nil},
	{"serve/28-lint-ascend-310p-shell-history.txt", "[nothing]", nil},

	// Texts of tools that could not see a device.
	{"detect/28-npu-smi-error-8020-container.txt", "device-in-use", []string{"another container"}},
	{"detect/29-npu-smi-no-such-file.txt", "npu-smi-not-runnable", []string{"does not exist on the host", "says nothing about the driver"}},
	{"detect/50-nvidia-smi-wsl-cannot-communicate.txt", "nvidia-smi-missing", []string{"Windows side"}},
	{"detect/56-nvidia-smi-compute-cap-invalid.txt", "compute-cap-query", []string{"too old"}},
}

// TestCases is the score of explain on real logs; nothing below all is enough.
func TestCases(t *testing.T) {
	t.Parallel()
	right := 0
	for _, a := range answers {
		text, err := os.ReadFile(filepath.Join("testdata/cases", a.file))
		if err != nil {
			t.Fatal(err)
		}
		d, err := Log(context.Background(), bytes.NewReader(text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if wrong := judgeAnswer(d, a.rule, a.says); wrong != "" {
			t.Errorf("%s: %s", a.file, wrong)
			continue
		}
		right++
	}
	t.Logf("score: %d of %d cases right", right, len(answers))
	files, err := filepath.Glob("testdata/cases/*/*")
	if err != nil || len(files) != len(answers) {
		t.Errorf("%d case files, %d answers (%v)", len(files), len(answers), err)
	}
}

// judgeAnswer says what is wrong with a diagnosis, or nothing.
func judgeAnswer(d Diagnosis, want string, says []string) string {
	got := d.Rule
	if d.Verdict != Found {
		got = "[" + string(d.Verdict) + "]"
	}
	if got != want {
		return "answer " + got + " (" + d.Rule + "), want " + want
	}
	text := all(d)
	for _, w := range says {
		if !strings.Contains(text, w) {
			return "the answer does not say " + w + ":\n" + text
		}
	}
	if d.Verdict == Found && len(d.Evidence) == 0 {
		return "no evidence"
	}
	if (d.Verdict == Succeeded) != (want == "[success]") || d.Verdict == Succeeded && d.Rule != "" {
		return "a success with a diagnosis"
	}
	return ""
}

// all is every text of a diagnosis.
func all(d Diagnosis) string {
	parts := []string{d.Cause}
	if f := d.Fix; f != nil {
		parts = append(parts, f.Do)
		for _, list := range [][]string{f.Run, f.Apt, f.Dnf, f.Pip} {
			parts = append(parts, list...)
		}
	}
	parts = append(parts, d.Check...)
	parts = append(parts, d.Bring...)
	return strings.Join(parts, "\n")
}
