// Parses the header field Range of a download.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace wan::server {

struct ByteRange {
  uint64_t first = 0;
  uint64_t count = 0;
  // Whether only a part was requested (206).
  bool partial = false;
};

// Returns the range that `field` requests of `size` bytes: all of them if the field is empty, is
// not a byte range, or has several, which RFC 9110 lets a server ignore. Nullopt if no byte of the
// range exists (416).
std::optional<ByteRange> ParseByteRange(std::string_view field, uint64_t size);

}  // namespace wan::server
