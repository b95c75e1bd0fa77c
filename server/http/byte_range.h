// Parses the header field Range of a request for a download.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace wan::server {

struct ByteRange {
  uint64_t first = 0;
  uint64_t count = 0;
  // Whether the caller asked for only a part of the bytes (status 206).
  bool partial = false;
};

// Returns the range of `size` bytes that `field` asks for; returns all bytes if the field is empty,
// is not a byte range, or has several ranges, which RFC 9110 lets a server ignore. Returns nullopt
// if no byte of the range exists (status 416).
std::optional<ByteRange> ParseByteRange(std::string_view field, uint64_t size);

}  // namespace wan::server
