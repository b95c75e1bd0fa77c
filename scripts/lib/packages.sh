# Lists distribution packages; their names are the same on Debian 12 and Ubuntu 24.04.

# The packages that compile and link the product. GoogleTest is among them, because the tests are part of every configured
# tree.
BUILD_PACKAGES=(
  build-essential ca-certificates ccache cmake mold ninja-build pkg-config python3 python3-pip unzip
  grpc-proto libabsl-dev libc-ares-dev libgrpc++-dev libgrpc-dev libprotobuf-dev libre2-dev
  libssl-dev protobuf-compiler protobuf-compiler-grpc zlib1g-dev
  libboost-dev libcli11-dev libcpp-httplib-dev libcurl4-openssl-dev libicu-dev libpq-dev libsqlite3-dev libsqlitecpp-dev libsystemd-dev libyaml-cpp-dev
  nlohmann-json3-dev prometheus-cpp-dev
  libavcodec-dev libavformat-dev libavutil-dev libjpeg-dev libpng-dev
  libswscale-dev libwebp-dev
  libgmock-dev libgtest-dev
)

# The packages that scripts/demo uses in addition.
DEMO_PACKAGES=(curl ffmpeg)

# The packages that the tests use in addition: mypy checks the types of the Python package; zsh and fish read the completion
# scripts of wanctl; prometheus_client has a strict parser of OpenMetrics; the nodes for ComfyUI use PyAV and numpy; Selenium
# uses certifi and typing_extensions; programs of the documentation use jq and requests; Spin checks the model of the claims.
TEST_PACKAGES=("${DEMO_PACKAGES[@]}" fish jq mypy python3-av python3-certifi python3-grpcio python3-numpy python3-pil python3-prometheus-client
  python3-protobuf python3-requests python3-setuptools python3-typing-extensions python3-wheel spin zsh)

# The browser in which the page is tested. Ubuntu has it only as a snap, where the page's tests are skipped.
BROWSER_PACKAGES=(chromium chromium-driver)

# The packages that scripts/check uses in addition. They have one version everywhere, because two versions format
# differently.
CHECK_PACKAGES=(clang-format-14 clang-tidy-14 python3-jsonschema python3-yaml shellcheck yamllint)

# The packages that scripts/prove uses in addition.
PROVE_PACKAGES=(libfaketime openssl python3 python3-grpcio python3-protobuf)

# The packages that scripts/package uses in addition.
PACKAGE_PACKAGES=(dpkg-dev file zstd)

# The packages that scripts/check_image uses in addition.
IMAGE_PACKAGES=(buildah mmdebstrap)

# install_packages NAME...: installs the packages that are missing; asks for root only if some are.
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

# install_browser: installs the browser of the page's tests where the distribution has it as a package.
install_browser() {
  if [ -n "$(apt-cache madison chromium-driver)" ]; then
    install_packages "${BROWSER_PACKAGES[@]}"
  else
    say "Chromium: the distribution has no package; the tests of the page will be skipped"
  fi
}

# install_postgresql: installs PostgreSQL for tests, which start servers of their own. With its usual settings the package
# would make a database and start a service.
install_postgresql() {
  if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    install_packages postgresql-common
    as_root sed -i -E 's/^#?create_main_cluster .*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf
  fi
  install_packages postgresql
}

# unpack_programs PACKAGE PROGRAM...: puts programs of a distribution package into .deps/tools. The package is unpacked, not
# installed: installing it would start a server on this machine.
unpack_programs() {
  local package=$1 tools=$DEPS_DIR/tools name missing=
  shift
  for name in "$@"; do
    [ -x "$tools/bin/$name" ] || command -v "$name" >/dev/null || missing=yes
  done
  [ -n "$missing" ] || return 0
  say "$*: unpacking from the distribution's package '$package'"
  local download
  download=$(mktemp -d)
  # apt's own user for downloads cannot write into other users' folders; mode 755 lets it read there.
  chmod 755 "$download"
  (cd "$download" && apt-get download -q "$package")
  for name in "$@"; do
    dpkg-deb --fsys-tarfile "$download/${package}"_*.deb | tar -x -C "$download" "./usr/bin/$name"
    install -D "$download/usr/bin/$name" "$tools/bin/$name"
  done
  rm -r "$download"
}

# install_alertmanager: unpacks Alertmanager as a program that is not a service. It reads its templates from the path where
# its package has them.
install_alertmanager() {
  unpack_programs prometheus-alertmanager prometheus-alertmanager
  local templates=/usr/share/prometheus/alertmanager download
  [ ! -e "$templates/default.tmpl" ] || return 0
  download=$(mktemp -d)
  chmod 755 "$download"
  (cd "$download" && apt-get download -q prometheus-alertmanager)
  dpkg-deb --fsys-tarfile "$download"/prometheus-alertmanager_*.deb | tar -x -C "$download" ".$templates"
  as_root mkdir -p "$templates"
  as_root cp "$download$templates"/*.tmpl "$templates"
  rm -r "$download"
}

# install_promtool: unpacks Prometheus' own checker of metrics and rules.
install_promtool() { unpack_programs prometheus promtool; }
