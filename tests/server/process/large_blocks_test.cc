#include "server/process/large_blocks.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>

namespace wan::server {
namespace {

constexpr size_t kBlock = size_t{8} << 20;

// Bytes that the allocator has mapped for blocks of their own, while it holds one more.
size_t MappedWithABlock() {
  void* const block = std::malloc(kBlock);
  *static_cast<volatile char*>(block) = 1;  // or the compiler leaves the block out
  const size_t mapped = mallinfo2().hblkhd;
  std::free(block);
  return mapped;
}

TEST(LargeBlocksTest, AreMappedEachTimeAndReturned) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  ReturnLargeBlocks();
  const size_t before = mallinfo2().hblkhd;
  // By default glibc would take the second one from its heap.
  for (int i = 0; i < 3; ++i) EXPECT_GE(MappedWithABlock(), before + kBlock) << i;
  EXPECT_EQ(mallinfo2().hblkhd, before);
}

}  // namespace
}  // namespace wan::server
