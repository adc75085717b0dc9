import glob
import importlib.util
import os

from setuptools import find_packages, setup
from torch.utils.cpp_extension import BuildExtension
from torch_npu.utils.cpp_extension import NpuExtension

found = importlib.util.find_spec("torch_npu")
include = os.path.join(found.submodule_search_locations[0], "include")
own_header = os.path.exists(os.path.join("csrc", "op_api_common.h"))

setup(
    name="batch_invariant_ops",
    version="@VERSION@",
    packages=find_packages(),
    install_requires=["torch"],
    ext_modules=[
        NpuExtension(
            name="batch_invariant_ops._C",
            sources=sorted(glob.glob("csrc/*.cpp")),
            include_dirs=[
                os.path.join(include, "third_party", "acl", "inc"),
                os.path.join(include, "third_party", "op-plugin"),
            ],
            extra_compile_args=["-O1", "-g0", "-w"] + (["-DOWN_HEADER"] if own_header else []),
        )
    ],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=True)},
)
