# The CPU image: compilers stay in the first stage; the last step of the second
# is the probe, so an image without working operators does not get built.
#
# The cache is mounted at a path that nothing else uses: buildah 1.28 removes the
# whole root file system of a step whose mount lies above its own storage, which
# /root/.cache and /var may.
ARG BASE
# hadolint ignore=DL3006
FROM ${BASE} AS build
SHELL ["/bin/sh", "-eu", "-c"]
ARG APTMIRROR=""
ARG INVAR_PYTHON=""
ARG PIP_INDEX_URL=""
ARG PIP_TRUSTED_HOST=""
ARG SOURCE_DATE_EPOCH=0
ENV PYTHONDONTWRITEBYTECODE=1
COPY invar install-packages /usr/local/bin/
RUN install-packages g++ python3 python3-venv
RUN --mount=type=secret,id=pip.conf,target=/etc/pip.conf --mount=type=cache,target=/build-cache \
    XDG_CACHE_HOME=/build-cache XDG_STATE_HOME=/build-cache invar build cpu --prefix /opt/invar ${INVAR_PYTHON:+--python "$INVAR_PYTHON"}; \
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
RUN invar probe --require 7
USER 65532:65532
HEALTHCHECK --interval=60s --timeout=10s CMD ["invar", "probe", "--level", "1"]
CMD ["invar", "status"]
