#include "tests/support/gunzip.h"

#include <gtest/gtest.h>
#include <zlib.h>

namespace wan::support {

std::string Gunzip(std::string_view packed) {
  constexpr int kGzipWindow = 15 + 16;
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) {
    ADD_FAILURE() << "zlib has no memory";
    return "";
  }
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  char part[1 << 14];
  int result = Z_OK;
  while (result == Z_OK) {
    stream.next_out = reinterpret_cast<Bytef*>(part);
    stream.avail_out = sizeof(part);
    result = inflate(&stream, Z_NO_FLUSH);
    text.append(part, sizeof(part) - stream.avail_out);
  }
  inflateEnd(&stream);
  const bool whole = result == Z_STREAM_END && stream.avail_in == 0;
  EXPECT_TRUE(whole) << "not one whole file of gzip";
  return whole ? text : "";
}

}  // namespace wan::support
