// Guesses which name a mistyped one means.
#pragma once

#include <string_view>
#include <vector>

namespace wan::server {

// Returns the name that is nearest to `wrong` by edit distance, the first of equals; empty if none
// is near. Names without a common character with `wrong` are never near.
std::string_view NearestName(std::string_view wrong, const std::vector<std::string_view>& names);

}  // namespace wan::server
