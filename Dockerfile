# wanserve as an image. Written against scripts/setup, but never built: there was no Docker daemon
# where it was written, and the base images' tags were not looked up.
#
# CPU:   docker build -t wanserve .
# CUDA:  docker build -t wanserve:cuda \
#          --build-arg BUILD_IMAGE=nvidia/cuda:13.0.1-devel-ubuntu24.04 --build-arg RUNTIME_IMAGE=ubuntu:24.04 .
#
# Both images must be of one distribution, Debian 12 or Ubuntu 24.04. The runtime image needs no CUDA:
# the libraries come along, the driver comes from the host through its container toolkit.
ARG BUILD_IMAGE=debian:12
ARG RUNTIME_IMAGE=debian:12-slim

FROM ${BUILD_IMAGE} AS build
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
# Programs find LibTorch by absolute path, so both stages use the same folder.
WORKDIR /opt/wanserve
# What changes seldom comes first: a change of a source does not fetch LibTorch again.
COPY scripts/ scripts/
RUN scripts/setup --build-only && rm -rf /var/lib/apt/lists/*
COPY CMakeLists.txt ./
COPY cmake/ cmake/
COPY proto/ proto/
COPY engine/ engine/
COPY server/ server/
COPY client/ client/
COPY demo/ demo/
RUN cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release \
 && cmake --build build --target wanserve wanctl wan_inspect \
 && if cmake --build build --target help | grep '^wan_cuda:' >/dev/null; then cmake --build build --target wan_cuda; fi
# Gathers what the runtime needs: /runtime becomes its /opt/wanserve; runtime_packages.txt names the
# distribution packages that own the libraries in use.
RUN runtime=/runtime/build \
 && mkdir -p $runtime/bin $runtime/lib /runtime/.deps/torch /runtime/.deps/nvidia/cu13/lib \
 && cp build/bin/{wanserve,wanctl,wan_inspect} $runtime/bin/ \
 && mkdir -p $runtime/share/wanserve && cp -r demo/model $runtime/share/wanserve/demo \
 && cp -r .deps/torch/lib /runtime/.deps/torch/ \
 && cp -r .deps/torch-*.dist-info /runtime/.deps/ \
 && cp -r .deps/nvidia/. /runtime/.deps/nvidia/ \
 && programs=(build/bin/wanserve build/bin/wanctl build/bin/wan_inspect) \
 && if [ -e build/lib/libwan_cuda.so ]; then \
      cp build/lib/libwan_cuda.so $runtime/lib/; programs+=(build/lib/libwan_cuda.so); fi \
 && ldd "${programs[@]}" .deps/torch/lib/*.so* | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u > /tmp/libraries \
 # Those of the toolkit, and the one that NVRTC loads by name.
 && { grep /usr/local/cuda /tmp/libraries || true; } | while read -r library; do \
      cp -L "$library" /runtime/.deps/nvidia/cu13/lib/; \
      case $library in *libnvrtc.so*) \
        cp -L "$(dirname "$library")"/libnvrtc-builtins.so.* /runtime/.deps/nvidia/cu13/lib/;; esac; done \
 && { grep -v -E '/usr/local/cuda|/opt/wanserve' /tmp/libraries || true; } | while read -r library; do \
      real=$(readlink -f "$library"); \
      dpkg-query -S "$real" 2>/dev/null || dpkg-query -S "${real#/usr}"; done \
    | cut -d: -f1 | sort -u > /runtime_packages.txt

FROM ${RUNTIME_IMAGE}
COPY --from=build /runtime_packages.txt /tmp/
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive xargs -a /tmp/runtime_packages.txt \
      apt-get install -y --no-install-recommends \
 && rm -rf /var/lib/apt/lists/* /tmp/runtime_packages.txt \
 && groupadd --gid 10001 wanserve \
 && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin wanserve \
 && install -d -o wanserve -g wanserve /var/lib/wanserve
COPY --from=build /runtime/ /opt/wanserve/
RUN ls -d /opt/wanserve/.deps/nvidia/*/lib > /etc/ld.so.conf.d/wanserve.conf && ldconfig
ENV PATH=/opt/wanserve/build/bin:$PATH \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 10001:10001
VOLUME /var/lib/wanserve
EXPOSE 50051 9464
STOPSIGNAL SIGTERM
# Health is gRPC's own protocol (grpc.health.v1): let the platform probe port 50051.
ENTRYPOINT ["wanserve"]
# --insecure, because inside the container the server cannot know who reaches the port: whoever publishes it decides.
# To let in known callers only, run with arguments of your own that have --auth-tokens FILE in its place (docs/security.md).
CMD ["--listen", "0.0.0.0:50051", "--metrics-listen", "0.0.0.0:9464", "--data-dir", "/var/lib/wanserve", "--insecure"]
