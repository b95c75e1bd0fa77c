# Functions that the scripts share; source it after `set -euo pipefail`.

REPO_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD_DIR=${WAN_BUILD_DIR:-$REPO_ROOT/build}
DEPS_DIR=${WAN_DEPS_DIR:-$REPO_ROOT/.deps}

# say TEXT: prints one line to the person who watches.
say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# as_root COMMAND...: runs the command directly if the user is root, otherwise through sudo.
as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "this needs root (no sudo here): $*"
  fi
}

# jobs_for_this_machine: prints how many compilers may run at a time: one for each core, if there are 2 GiB for each.
jobs_for_this_machine() {
  local cores memory_gib
  cores=$(nproc)
  memory_gib=$(awk '/^MemTotal/ {print int($2 / 1048576)}' /proc/meminfo)
  local by_memory=$(((memory_gib + 1) / 2))
  [ "$by_memory" -ge 1 ] || by_memory=1
  echo $((cores < by_memory ? cores : by_memory))
}

# cuda_toolkit: prints the root folder of a CUDA 13 toolkit; fails if there is none or WAN_CUDA=OFF.
cuda_toolkit() {
  [ "${WAN_CUDA:-AUTO}" != OFF ] || return 1
  local candidate
  for candidate in "$(command -v nvcc || true)" "${CUDA_HOME:-}/bin/nvcc" "${CUDA_PATH:-}/bin/nvcc" \
    /usr/local/cuda/bin/nvcc; do
    if [ -x "$candidate" ] && "$candidate" --version | grep -q 'release 13\.'; then
      dirname "$(dirname "$(readlink -f "$candidate")")"
      return 0
    fi
  done
  return 1
}

# configure [cmake arguments]: configures BUILD_DIR for what the machine has.
configure() {
  cmake -S "$REPO_ROOT" -B "$BUILD_DIR" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DWAN_DEPS_DIR="$DEPS_DIR" -DWAN_CUDA="${WAN_CUDA:-AUTO}" "$@"
}

# build [target...]: builds the targets in BUILD_DIR.
build() {
  cmake --build "$BUILD_DIR" --parallel "$(jobs_for_this_machine)" ${1:+--target "$@"}
}

# build_programs target...: builds for a person who waits: first says how long it may take, then shows one line. All output
# is written to BUILD_DIR/build.log.
build_programs() {
  local jobs steps log=$BUILD_DIR/build.log
  jobs=$(jobs_for_this_machine)
  if [ -x "$BUILD_DIR/bin/$1" ]; then
    say "Building $* where something has changed"
  else
    steps=$(ninja -C "$BUILD_DIR" -t commands "$@" | wc -l)
    # Each file takes a core about two seconds.
    say "Building $*: $steps steps on $jobs processors, about $(((steps * 2 / jobs + 59) / 60)) minutes the first time"
  fi
  NINJA_STATUS='%f of %t steps, %e s: ' build "$@" 2>&1 | tee "$log" | one_line ||
    { tail -n 40 "$log" >&2; die "the build failed; $log has all of it"; }
}

# one_line: shows the latest line of its input, in place of the one before; shows nothing if nobody watches.
one_line() {
  local line
  while IFS= read -r line; do
    if [ -t 2 ]; then printf '\r\033[K    %s' "${line:0:100}" >&2; fi
  done
  if [ -t 2 ]; then printf '\r\033[K' >&2; fi
}
