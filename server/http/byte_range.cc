#include "server/http/byte_range.h"

#include <algorithm>
#include <charconv>

namespace wan::server {
namespace {

std::optional<uint64_t> Number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

std::optional<ByteRange> ParseByteRange(std::string_view field, uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  const ByteRange all{0, size, false};
  if (!field.starts_with(kUnit)) return all;
  field.remove_prefix(kUnit.size());
  const size_t dash = field.find('-');
  if (dash == std::string_view::npos) return all;
  const std::string_view before = field.substr(0, dash);
  const std::string_view behind = field.substr(dash + 1);
  const std::optional<uint64_t> last = Number(behind);
  // The field has several ranges, or something that is not a number.
  if (!behind.empty() && !last.has_value()) return all;
  if (before.empty()) {  // "-N" asks for the last N bytes
    if (!last.has_value()) return all;
    const uint64_t count = std::min(*last, size);
    if (count == 0) return std::nullopt;
    return ByteRange{size - count, count, true};
  }
  const std::optional<uint64_t> first = Number(before);
  if (!first.has_value() || (last.has_value() && *last < *first)) return all;
  if (*first >= size) return std::nullopt;
  const uint64_t end = last.has_value() ? std::min(*last, size - 1) : size - 1;
  return ByteRange{*first, end - *first + 1, true};
}

}  // namespace wan::server
