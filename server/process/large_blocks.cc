#include "server/process/large_blocks.h"

#include <malloc.h>

#include <cstdlib>

namespace wan::server {
namespace {

constexpr int kLargeBlock = 4 << 20;

}  // namespace

void ReturnLargeBlocks() {
  if (std::getenv("MALLOC_MMAP_THRESHOLD_") != nullptr) return;
  if (std::getenv("GLIBC_TUNABLES") != nullptr) return;
  mallopt(M_MMAP_THRESHOLD, kLargeBlock);
  mallopt(M_TRIM_THRESHOLD, kLargeBlock);
}

}  // namespace wan::server
