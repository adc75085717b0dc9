# The CUDA image: kernels are compiled for CUDA_ARCH_LIST without a GPU, with
# compiler wheels that match torch; neither they nor g++ reach the last stage.
# What needs a GPU (probe levels 6 and 7) runs where the image runs.
ARG BASE
# hadolint ignore=DL3006
FROM ${BASE} AS build
SHELL ["/bin/sh", "-eu", "-c"]
ARG APTMIRROR=""
ARG CUDA_ARCH_LIST=""
ARG INVAR_PYTHON=""
ARG INVAR_BUILD_ARGS="--install-toolkit"
ARG PIP_INDEX_URL=""
ARG PIP_TRUSTED_HOST=""
ARG SOURCE_DATE_EPOCH=0
ENV PYTHONDONTWRITEBYTECODE=1
COPY invar install-packages /usr/local/bin/
RUN install-packages g++ python3 python3-venv
# The words of INVAR_BUILD_ARGS are arguments of their own.
# hadolint ignore=SC2086
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=cache,target=/build-cache \
    XDG_CACHE_HOME=/build-cache XDG_STATE_HOME=/build-cache invar build cuda --arch "$CUDA_ARCH_LIST" --prefix /opt/invar ${INVAR_PYTHON:+--python "$INVAR_PYTHON"} $INVAR_BUILD_ARGS; \
    mkdir /hook; find / -xdev -path /opt/invar -prune -o -name invar.pth -exec cp --parents {} /hook \;

# hadolint ignore=DL3006
FROM ${BASE}
SHELL ["/bin/sh", "-eu", "-c"]
ARG APTMIRROR=""
ENV INVAR_HOME=/opt/invar PYTHONDONTWRITEBYTECODE=1
COPY invar install-packages /usr/local/bin/
RUN install-packages python3 && rm /usr/local/bin/install-packages
COPY --from=build /opt/invar /opt/invar
COPY --from=build /hook/ /
RUN invar probe cuda --require 5
USER 65532:65532
HEALTHCHECK --interval=60s --timeout=10s CMD ["invar", "probe", "--level", "1"]
CMD ["invar", "status"]
