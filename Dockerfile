# wanserve as an image: the server's Debian packages on a plain distribution (docs/operate/install.md#image).
#
# CPU:   docker build -t wanserve:cpu .
# CUDA:  docker build -t wanserve:cuda --build-arg BUILD_IMAGE=nvidia/cuda:13.0.1-devel-ubuntu24.04 \
#          --build-arg RUNTIME_IMAGE=ubuntu:24.04 .
#
# Podman and buildah take the same file; --format docker keeps the HEALTHCHECK, which the OCI format has not. Both images
# must be of one distribution, Debian 12 or Ubuntu 24.04. The image has CUDA if BUILD_IMAGE has its toolkit; the driver
# comes from the host through its container toolkit. scripts/check_image builds, runs and measures both.
ARG BUILD_IMAGE=debian:12
ARG RUNTIME_IMAGE=debian:12-slim

FROM ${BUILD_IMAGE} AS build
# Where it is built leaves no trace in the packages.
ARG SOURCE=/usr/src/wanserve
ARG WAN_CUDA=AUTO
ARG WAN_DEPS_DIR=${SOURCE}/.deps
WORKDIR ${SOURCE}
# What changes seldom comes first: a change of a source does not fetch LibTorch again.
COPY scripts/ scripts/
RUN scripts/setup --build-only
COPY CMakeLists.txt README.md LICENSE NOTICE ./
COPY cmake/ cmake/
COPY deploy/ deploy/
COPY proto/ proto/
COPY engine/ engine/
COPY server/ server/
COPY client/ client/
COPY benchmarks/ benchmarks/
COPY demo/ demo/
COPY docs/ docs/
RUN scripts/package /packages

FROM ${RUNTIME_IMAGE}
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="wanserve" \
      org.opencontainers.image.description="gRPC server for the Wan2.2 video diffusion models" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="Apache-2.0"
# The user's number is fixed, because volumes remember it. curl is what wanserve-fetch-model needs.
# hadolint ignore=DL3008
RUN --mount=type=bind,from=build,source=/packages,target=/packages \
    groupadd --gid 10001 wanserve \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/wanserve --shell /usr/sbin/nologin wanserve \
 && apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends curl /packages/*.deb \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/log/apt /var/log/dpkg.log \
 && install -d -o wanserve -g wanserve /var/lib/wanserve \
 && wanserve-sbom >/usr/share/wanserve/sbom.cdx.json
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 10001:10001
VOLUME /var/lib/wanserve
EXPOSE 50051 8000 9464
STOPSIGNAL SIGTERM
# Loading a model takes minutes, in which the answer is NOT_SERVING. Kubernetes has probes of its own.
HEALTHCHECK --interval=30s --timeout=10s --start-period=10m --retries=3 \
  CMD ["wanctl", "--server", "127.0.0.1:50051", "health"]
ENTRYPOINT ["wanserve"]
# Port 8000 has the page for browsers and the OpenAI video API.
# --insecure, because inside the container the server cannot know who reaches the port: whoever publishes it decides.
# To let in known callers only, run with arguments of your own that have --auth-tokens FILE in its place (docs/operate/security.md).
CMD ["--listen", "0.0.0.0:50051", "--http-listen", "0.0.0.0:8000", "--metrics-listen", "0.0.0.0:9464", "--data-dir", "/var/lib/wanserve", "--insecure"]
