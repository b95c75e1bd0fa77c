#include "server/process/heaps.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

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

TEST(HeapsTest, LargeBlocksAreMappedEachTimeAndReturned) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  KeepHeapsSmall();
  const size_t before = mallinfo2().hblkhd;
  // By default glibc would take the second one from its heap.
  for (int i = 0; i < 3; ++i) EXPECT_GE(MappedWithABlock(), before + kBlock) << i;
  EXPECT_EQ(mallinfo2().hblkhd, before);
}

// Heaps of glibc that have been made.
int Heaps() {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* const out = open_memstream(&text, &size);
  malloc_info(0, out);
  std::fclose(out);
  int heaps = 0;
  for (const char* at = text; (at = std::strstr(at, "<heap nr=")) != nullptr; ++at) ++heaps;
  std::free(text);
  return heaps;
}

TEST(HeapsTest, ManyThreadsShareFour) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  KeepHeapsSmall();
  constexpr int kThreads = 12;
  std::barrier all_there(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      void* volatile block = std::malloc(100);
      all_there.arrive_and_wait();  // a thread that ends leaves its heap to the next
      std::free(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(Heaps(), 4);
}

}  // namespace
}  // namespace wan::server
