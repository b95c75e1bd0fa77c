#include "server/conversion/color.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace wan::server {

std::optional<Color> ParseColor(std::string_view text) {
  constexpr size_t kTextBytes = 7;
  if (text.size() != kTextBytes || text.front() != '#') return std::nullopt;
  text.remove_prefix(1);
  // Check the digits, because SimpleHexAtoi also accepts a sign and "0x".
  if (!std::all_of(text.begin(), text.end(), absl::ascii_isxdigit)) return std::nullopt;
  uint32_t value = 0;
  if (!absl::SimpleHexAtoi(absl::string_view(text.data(), text.size()), &value)) {
    return std::nullopt;
  }
  return Color{static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 8),
               static_cast<uint8_t>(value)};
}

std::string ColorText(const Color& color) {
  return absl::StrCat("#", absl::Hex(color.red, absl::kZeroPad2),
                      absl::Hex(color.green, absl::kZeroPad2),
                      absl::Hex(color.blue, absl::kZeroPad2));
}

}  // namespace wan::server
