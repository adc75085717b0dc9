# The Ascend images (A2, A3, 950 by TARGET and BASE): torch and torch_npu where
# the base has none, then both stages, then the probe as the last step. CANN's
# base images hold the compilers themselves, so there is one stage.
# VLLM_BATCH_INVARIANT is set nowhere: it would stay in the image.
ARG BASE
# hadolint ignore=DL3006
FROM ${BASE}
SHELL ["/bin/sh", "-eu", "-c"]
ARG TARGET
ARG APTMIRROR=""
ARG SOC_VERSION=""
ARG COMPILE_CUSTOM_KERNELS=""
ARG INVAR_PYTHON=""
ARG INVAR_BUILD_ARGS=""
ARG TORCH_REQUIREMENTS=""
ARG PIP_INDEX_URL=""
ARG ASCEND_INDEX_URL=""
ARG PIP_TRUSTED_HOST=""
ARG SOURCE_DATE_EPOCH=0
ENV SOC_VERSION=${SOC_VERSION} INVAR_HOME=/opt/invar TASK_QUEUE_ENABLE=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
COPY invar install-packages /usr/local/bin/
RUN install-packages g++ && rm /usr/local/bin/install-packages
# The words of TORCH_REQUIREMENTS and INVAR_BUILD_ARGS are arguments of their own.
# hadolint ignore=DL3013,DL3042,SC2086
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=cache,target=/build-cache \
    python=${INVAR_PYTHON:-python3}; if [ -d "$python" ]; then python=$python/bin/python; fi; \
    if [ -n "$TORCH_REQUIREMENTS" ]; then \
      XDG_CACHE_HOME=/build-cache "$python" -m pip install --no-compile $TORCH_REQUIREMENTS setuptools wheel ${ASCEND_INDEX_URL:+--extra-index-url "$ASCEND_INDEX_URL"}; \
    fi
# hadolint ignore=SC2086
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=cache,target=/build-cache \
    XDG_CACHE_HOME=/build-cache XDG_STATE_HOME=/build-cache invar build "$TARGET" --prefix /opt/invar ${INVAR_PYTHON:+--python "$INVAR_PYTHON"} $INVAR_BUILD_ARGS
RUN invar probe --require 5
HEALTHCHECK --interval=60s --timeout=10s CMD ["invar", "probe", "--level", "1"]
CMD ["invar", "status"]
