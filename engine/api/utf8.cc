#include "engine/api/utf8.h"

#include <unicode/utf8.h>

#include <cstddef>
#include <cstdint>

namespace wan {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Returns how many bytes at the beginning of `text` are well-formed.
size_t WellFormed(std::string_view text) {
  const auto size = static_cast<int64_t>(text.size());
  for (int64_t next = 0; next < size;) {
    const int64_t begin = next;
    UChar32 character = 0;
    U8_NEXT(text.data(), next, size, character);
    if (character < 0) return static_cast<size_t>(begin);
  }
  return text.size();
}

}  // namespace

bool IsUtf8(std::string_view text) { return WellFormed(text) == text.size(); }

std::string ToUtf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (;;) {
    const size_t good = WellFormed(text);
    result.append(text.substr(0, good));
    if (good == text.size()) return result;
    result.append(kReplacement);
    text.remove_prefix(good + 1);
  }
}

}  // namespace wan
