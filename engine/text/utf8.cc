#include "engine/text/utf8.h"

#include <unicode/utf8.h>

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"

namespace wan {

absl::StatusOr<std::u32string> DecodeUtf8(std::string_view utf8) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(utf8.data());
  const auto size = static_cast<int64_t>(utf8.size());
  std::u32string text;
  text.reserve(utf8.size());
  for (int64_t next = 0; next < size;) {
    const int64_t start = next;
    UChar32 code_point;
    U8_NEXT(bytes, next, size, code_point);
    if (code_point < 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "text is not valid UTF-8: byte 0x%02X at offset %d does not start a well-formed sequence",
          bytes[start], start));
    }
    text.push_back(static_cast<char32_t>(code_point));
  }
  return text;
}

std::string EncodeUtf8(std::u32string_view text) {
  std::string utf8;
  utf8.reserve(text.size());
  for (const char32_t c : text) {
    uint8_t bytes[U8_MAX_LENGTH];
    int length = 0;
    U8_APPEND_UNSAFE(bytes, length, c);
    utf8.append(reinterpret_cast<const char*>(bytes), length);
  }
  return utf8;
}

}  // namespace wan
