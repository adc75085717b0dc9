#!/bin/bash
# shellcheck disable=SC2164,SC2035,SC2103 # as projects of this kind have it: the last cd decides the exit status
# Builds the wheel and installs it with the python3 and pip3 of PATH.
rm -rf build
export USE_NINJA=1
export MAX_JOBS=${MAX_JOBS:-$(nproc)}
python3 setup.py build_ext
python3 setup.py bdist_wheel
cd dist
pip3 install *.whl -I
cd -
