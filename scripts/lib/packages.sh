# Distribution packages; the names are the same on Debian 12 and Ubuntu 24.04.

# What compiles and links the product. GoogleTest too: the tests are part of every configured tree.
BUILD_PACKAGES=(
  build-essential ca-certificates ccache cmake mold ninja-build pkg-config python3 python3-pip unzip
  grpc-proto libabsl-dev libc-ares-dev libgrpc++-dev libgrpc-dev libprotobuf-dev libre2-dev
  libssl-dev protobuf-compiler protobuf-compiler-grpc zlib1g-dev
  libboost-dev libcli11-dev libcpp-httplib-dev libcurl4-openssl-dev libicu-dev libsqlite3-dev libsqlitecpp-dev libyaml-cpp-dev
  nlohmann-json3-dev prometheus-cpp-dev
  libavcodec-dev libavformat-dev libavutil-dev libjpeg-dev libpng-dev
  libswscale-dev
  libgmock-dev libgtest-dev
)

# What the tests and the demo use besides.
# mypy checks the types of the Python package; zsh and fish read the completion scripts of wanctl.
TEST_PACKAGES=(curl ffmpeg fish mypy python3-grpcio python3-protobuf python3-setuptools python3-wheel zsh)

# What scripts/check uses besides. One version everywhere: two versions format differently.
CHECK_PACKAGES=(clang-format-14 clang-tidy-14 shellcheck)

# What scripts/prove uses besides.
PROVE_PACKAGES=(libfaketime python3 python3-grpcio python3-protobuf)

# install_packages NAME...: installs those that are missing; asks for root only then.
install_packages() {
  local missing=() name
  for name in "$@"; do
    dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null | grep -qx installed || missing+=("$name")
  done
  if [ ${#missing[@]} -eq 0 ]; then
    say "Distribution packages: all ${#} are there"
    return
  fi
  say "Distribution packages: installing ${missing[*]}"
  as_root apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# install_promtool: Prometheus' own checker of metrics, into .deps/tools. The package is unpacked, not
# installed: installing it would start a Prometheus server on this machine.
install_promtool() {
  local tools=$DEPS_DIR/tools
  if [ -x "$tools/bin/promtool" ] || command -v promtool >/dev/null; then
    return
  fi
  say "promtool: unpacking it from the distribution's package 'prometheus'"
  local download
  download=$(mktemp -d)
  # apt's own download user cannot write into other users' folders; 755 lets it look.
  chmod 755 "$download"
  (cd "$download" && apt-get download -q prometheus)
  dpkg-deb --fsys-tarfile "$download"/prometheus_*.deb | tar -x -C "$download" ./usr/bin/promtool
  install -D "$download/usr/bin/promtool" "$tools/bin/promtool"
  rm -r "$download"
}
