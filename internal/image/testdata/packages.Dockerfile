# What the families' Dockerfiles do to a base of Debian, without torch.
ARG BASE
FROM ${BASE}
SHELL ["/bin/sh", "-eu", "-c"]
ARG APTMIRROR=""
ARG SOURCE_DATE_EPOCH=0
COPY invar install-packages /usr/local/bin/
RUN install-packages make python3-minimal && rm /usr/local/bin/install-packages
RUN mkdir -p /opt/invar && invar completion bash >/opt/invar/completion && ln -s completion /opt/invar/link
USER 65532:65532
HEALTHCHECK --interval=60s --timeout=10s CMD ["invar", "probe", "--level", "1"]
CMD ["invar", "status"]
