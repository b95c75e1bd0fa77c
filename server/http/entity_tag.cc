#include "server/http/entity_tag.h"

namespace wan::server {

bool TagListed(const std::vector<std::string_view>& values, std::string_view tag) {
  constexpr std::string_view kBetween = " \t,";
  constexpr std::string_view kWeak = "W/";
  for (std::string_view value : values) {
    if (value == "*") return true;
    for (;;) {
      const size_t begin = value.find_first_not_of(kBetween);
      if (begin == std::string_view::npos) break;
      value.remove_prefix(begin);
      if (value.starts_with(kWeak)) value.remove_prefix(kWeak.size());
      // A tag may contain commas, but not quotes.
      const size_t end = value.find('"', 1);
      if (!value.starts_with('"') || end == std::string_view::npos) break;
      if (value.substr(0, end + 1) == tag) return true;
      value.remove_prefix(end + 1);
    }
  }
  return false;
}

}  // namespace wan::server
