#include "server/process/heaps.h"

#include <malloc.h>

#include <cstdlib>

namespace wan::server {
namespace {

constexpr int kLargeBlock = 4 << 20;
constexpr int kHeaps = 4;

}  // namespace

void KeepHeapsSmall() {
  if (std::getenv("GLIBC_TUNABLES") != nullptr) return;
  if (std::getenv("MALLOC_ARENA_MAX") == nullptr) mallopt(M_ARENA_MAX, kHeaps);
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") != nullptr) return;
  mallopt(M_MMAP_THRESHOLD, kLargeBlock);
  mallopt(M_TRIM_THRESHOLD, kLargeBlock);
}

}  // namespace wan::server
