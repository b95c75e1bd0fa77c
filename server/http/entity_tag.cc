#include "server/http/entity_tag.h"

namespace wan::server {

bool TagListed(std::string_view field, std::string_view tag) {
  constexpr std::string_view kBetween = " \t,";
  constexpr std::string_view kWeak = "W/";
  if (field == "*") return true;
  for (;;) {
    const size_t begin = field.find_first_not_of(kBetween);
    if (begin == std::string_view::npos) return false;
    field.remove_prefix(begin);
    if (field.starts_with(kWeak)) field.remove_prefix(kWeak.size());
    // A tag may contain commas, but not quotes.
    const size_t end = field.find('"', 1);
    if (!field.starts_with('"') || end == std::string_view::npos) return false;
    if (field.substr(0, end + 1) == tag) return true;
    field.remove_prefix(end + 1);
  }
}

}  // namespace wan::server
