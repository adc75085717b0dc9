# The invar binary alone, for `COPY --from=` in Dockerfiles of others. A stage
# starts it once; the image holds that one file and nothing that the run left.
ARG BASE=scratch
# hadolint ignore=DL3006
FROM ${BASE} AS started
COPY invar /invar
RUN ["/invar", "version"]

# hadolint ignore=DL3006
FROM ${BASE}
COPY --from=started /invar /invar
USER 65532:65532
ENTRYPOINT ["/invar"]
CMD ["--help"]
