# Written by `invar image plan --bake`; the matrix is docker/images.yaml.
# The context needs the invar binary beside the Dockerfiles: mage dist, then
# cp dist/invar_*_linux_amd64 docker/invar

group "default" {
  targets = ["binary-none", "cpu-ubuntu24_04", "cpu-debian12", "cpu-openeuler24_03", "cuda-ubuntu24_04", "cuda-openeuler24_03", "ascend910b-ubuntu22_04", "ascend910b-openeuler24_03", "ascend910_93-ubuntu22_04", "ascend910_93-openeuler24_03", "ascend950-ubuntu22_04", "ascend950-openeuler24_03"]
}

target "binary-none" {
  dockerfile = "binary.Dockerfile"
  platforms = ["linux/amd64", "linux/arm64"]
  args = {
    BASE = "scratch"
    TARGET = ""
  }
  tags = ["localhost/invar:1.0.0-bin"]
}

target "cpu-ubuntu24_04" {
  dockerfile = "cpu.Dockerfile"
  platforms = ["linux/amd64", "linux/arm64"]
  args = {
    APTMIRROR = ""
    BASE = "docker.io/library/ubuntu:24.04"
    INVAR_PYTHON = ""
    PIP_INDEX_URL = ""
    PIP_TRUSTED_HOST = ""
    TARGET = "cpu"
  }
  tags = ["localhost/invar:1.0.0-cpu"]
}

target "cpu-debian12" {
  dockerfile = "cpu.Dockerfile"
  platforms = ["linux/amd64", "linux/arm64"]
  args = {
    APTMIRROR = ""
    BASE = "docker.io/library/debian:bookworm-slim"
    INVAR_PYTHON = ""
    PIP_INDEX_URL = ""
    PIP_TRUSTED_HOST = ""
    TARGET = "cpu"
  }
  tags = ["localhost/invar:1.0.0-cpu-debian12"]
}

target "cpu-openeuler24_03" {
  dockerfile = "cpu.Dockerfile"
  platforms = ["linux/amd64", "linux/arm64"]
  args = {
    APTMIRROR = ""
    BASE = "docker.io/openeuler/openeuler:24.03-lts"
    INVAR_PYTHON = ""
    PIP_INDEX_URL = ""
    PIP_TRUSTED_HOST = ""
    TARGET = "cpu"
  }
  tags = ["localhost/invar:1.0.0-cpu-openeuler"]
}

target "cuda-ubuntu24_04" {
  dockerfile = "cuda.Dockerfile"
  platforms = ["linux/amd64", "linux/arm64"]
  args = {
    APTMIRROR = ""
    BASE = "docker.io/library/ubuntu:24.04"
    CUDA_ARCH_LIST = "8.0;9.0;10.0;12.0"
    INVAR_BUILD_ARGS = "--install-toolkit"
    INVAR_PYTHON = ""
    PIP_INDEX_URL = ""
    PIP_TRUSTED_HOST = ""
    TARGET = "cuda"
  }
  tags = ["localhost/invar:1.0.0-cuda"]
}

target "cuda-openeuler24_03" {
  dockerfile = "cuda.Dockerfile"
  platforms = ["linux/amd64", "linux/arm64"]
  args = {
    APTMIRROR = ""
    BASE = "docker.io/openeuler/openeuler:24.03-lts"
    CUDA_ARCH_LIST = "8.0;9.0;10.0;12.0"
    INVAR_BUILD_ARGS = "--install-toolkit"
    INVAR_PYTHON = ""
    PIP_INDEX_URL = ""
    PIP_TRUSTED_HOST = ""
    TARGET = "cuda"
  }
  tags = ["localhost/invar:1.0.0-cuda-openeuler"]
}

target "ascend910b-ubuntu22_04" {
  dockerfile = "ascend.Dockerfile"
  platforms = ["linux/amd64", "linux/arm64"]
  args = {
    APTMIRROR = ""
    ASCEND_INDEX_URL = "https://mirrors.huaweicloud.com/ascend/repos/pypi"
    BASE = "quay.io/ascend/cann:9.1.0-910b-ubuntu22.04-py3.12"
    CANN_QUAY_URL = "quay.io/ascend/cann"
    CANN_VERSION = "9.1.0"
    COMPILE_CUSTOM_KERNELS = ""
    INVAR_BUILD_ARGS = ""
    INVAR_PYTHON = ""
    PIP_INDEX_URL = ""
    PIP_TRUSTED_HOST = ""
    SOC_VERSION = "ascend910b1"
    TARGET = "ascend910b"
    TORCH_REQUIREMENTS = "torch==2.10.0 torch-npu==2.10.0.post4"
  }
  tags = ["localhost/invar:1.0.0-ascend910b", "localhost/invar:1.0.0", "localhost/invar:1.0.0-910b"]
}

target "ascend910b-openeuler24_03" {
  dockerfile = "ascend.Dockerfile"
  platforms = ["linux/amd64", "linux/arm64"]
  args = {
    APTMIRROR = ""
    ASCEND_INDEX_URL = "https://mirrors.huaweicloud.com/ascend/repos/pypi"
    BASE = "quay.io/ascend/cann:9.1.0-910b-openeuler24.03-py3.12"
    CANN_QUAY_URL = "quay.io/ascend/cann"
    CANN_VERSION = "9.1.0"
    COMPILE_CUSTOM_KERNELS = ""
    INVAR_BUILD_ARGS = ""
    INVAR_PYTHON = ""
    PIP_INDEX_URL = ""
    PIP_TRUSTED_HOST = ""
    SOC_VERSION = "ascend910b1"
    TARGET = "ascend910b"
    TORCH_REQUIREMENTS = "torch==2.10.0 torch-npu==2.10.0.post4"
  }
  tags = ["localhost/invar:1.0.0-ascend910b-openeuler", "localhost/invar:1.0.0-openeuler", "localhost/invar:1.0.0-910b-openeuler"]
}

target "ascend910_93-ubuntu22_04" {
  dockerfile = "ascend.Dockerfile"
  platforms = ["linux/amd64", "linux/arm64"]
  args = {
    APTMIRROR = ""
    ASCEND_INDEX_URL = "https://mirrors.huaweicloud.com/ascend/repos/pypi"
    BASE = "quay.io/ascend/cann:9.1.0-a3-ubuntu22.04-py3.12"
    CANN_QUAY_URL = "quay.io/ascend/cann"
    CANN_VERSION = "9.1.0"
    COMPILE_CUSTOM_KERNELS = ""
    INVAR_BUILD_ARGS = ""
    INVAR_PYTHON = ""
    PIP_INDEX_URL = ""
    PIP_TRUSTED_HOST = ""
    SOC_VERSION = "ascend910_9391"
    TARGET = "ascend910_93"
    TORCH_REQUIREMENTS = "torch==2.10.0 torch-npu==2.10.0.post4"
  }
  tags = ["localhost/invar:1.0.0-ascend910_93", "localhost/invar:1.0.0-a3"]
}

target "ascend910_93-openeuler24_03" {
  dockerfile = "ascend.Dockerfile"
  platforms = ["linux/amd64", "linux/arm64"]
  args = {
    APTMIRROR = ""
    ASCEND_INDEX_URL = "https://mirrors.huaweicloud.com/ascend/repos/pypi"
    BASE = "quay.io/ascend/cann:9.1.0-a3-openeuler24.03-py3.12"
    CANN_QUAY_URL = "quay.io/ascend/cann"
    CANN_VERSION = "9.1.0"
    COMPILE_CUSTOM_KERNELS = ""
    INVAR_BUILD_ARGS = ""
    INVAR_PYTHON = ""
    PIP_INDEX_URL = ""
    PIP_TRUSTED_HOST = ""
    SOC_VERSION = "ascend910_9391"
    TARGET = "ascend910_93"
    TORCH_REQUIREMENTS = "torch==2.10.0 torch-npu==2.10.0.post4"
  }
  tags = ["localhost/invar:1.0.0-ascend910_93-openeuler", "localhost/invar:1.0.0-a3-openeuler"]
}

target "ascend950-ubuntu22_04" {
  dockerfile = "ascend.Dockerfile"
  platforms = ["linux/amd64", "linux/arm64"]
  args = {
    APTMIRROR = ""
    ASCEND_INDEX_URL = "https://mirrors.huaweicloud.com/ascend/repos/pypi"
    BASE = "quay.io/ascend/cann:9.1.0-950-ubuntu22.04-py3.12"
    CANN_QUAY_URL = "quay.io/ascend/cann"
    CANN_VERSION = "9.1.0"
    COMPILE_CUSTOM_KERNELS = ""
    INVAR_BUILD_ARGS = ""
    INVAR_PYTHON = ""
    PIP_INDEX_URL = ""
    PIP_TRUSTED_HOST = ""
    SOC_VERSION = "ascend950dt_9582"
    TARGET = "ascend950"
    TORCH_REQUIREMENTS = "torch==2.10.0 torch-npu==2.10.0.post4"
  }
  tags = ["localhost/invar:1.0.0-ascend950", "localhost/invar:1.0.0-a5", "localhost/invar:1.0.0-950dt"]
}

target "ascend950-openeuler24_03" {
  dockerfile = "ascend.Dockerfile"
  platforms = ["linux/amd64", "linux/arm64"]
  args = {
    APTMIRROR = ""
    ASCEND_INDEX_URL = "https://mirrors.huaweicloud.com/ascend/repos/pypi"
    BASE = "quay.io/ascend/cann:9.1.0-950-openeuler24.03-py3.12"
    CANN_QUAY_URL = "quay.io/ascend/cann"
    CANN_VERSION = "9.1.0"
    COMPILE_CUSTOM_KERNELS = ""
    INVAR_BUILD_ARGS = ""
    INVAR_PYTHON = ""
    PIP_INDEX_URL = ""
    PIP_TRUSTED_HOST = ""
    SOC_VERSION = "ascend950dt_9582"
    TARGET = "ascend950"
    TORCH_REQUIREMENTS = "torch==2.10.0 torch-npu==2.10.0.post4"
  }
  tags = ["localhost/invar:1.0.0-ascend950-openeuler", "localhost/invar:1.0.0-a5-openeuler", "localhost/invar:1.0.0-950dt-openeuler"]
}
