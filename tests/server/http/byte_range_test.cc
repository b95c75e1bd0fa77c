#include "server/http/byte_range.h"

#include <gtest/gtest.h>

namespace wan::server {
namespace {

// FIRST+COUNT of a part, "all", or "none".
std::string Of(std::string_view field, uint64_t size = 10) {
  const std::optional<ByteRange> range = ParseByteRange(field, size);
  if (!range.has_value()) return "none";
  if (!range->partial) return "all";
  return std::to_string(range->first) + "+" + std::to_string(range->count);
}

TEST(ByteRangeTest, Parts) {
  EXPECT_EQ(Of("bytes=0-0"), "0+1");
  EXPECT_EQ(Of("bytes=2-5"), "2+4");
  EXPECT_EQ(Of("bytes=2-"), "2+8");
  EXPECT_EQ(Of("bytes=9-9"), "9+1");
  EXPECT_EQ(Of("bytes=0-99"), "0+10");
  EXPECT_EQ(Of("bytes=-3"), "7+3");
  EXPECT_EQ(Of("bytes=-30"), "0+10");
}

TEST(ByteRangeTest, NoByteOfItExists) {
  EXPECT_EQ(Of("bytes=10-"), "none");
  EXPECT_EQ(Of("bytes=10-11"), "none");
  EXPECT_EQ(Of("bytes=-0"), "none");
  EXPECT_EQ(Of("bytes=0-0", 0), "none");
}

TEST(ByteRangeTest, WhatIsNoRangeIsIgnored) {
  for (const char* const field : {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=5-2",
                                  "bytes=0-1,3-4", "lines=1-2", "bytes=99999999999999999999-"}) {
    EXPECT_EQ(Of(field), "all") << field;
  }
}

}  // namespace
}  // namespace wan::server
