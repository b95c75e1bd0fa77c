// Guesses which name a mistyped name means.
#pragma once

#include <string_view>
#include <vector>

namespace wan::server {

// Returns the first name with the smallest edit distance to `wrong`; empty if none is near. A name
// that has no character in common with `wrong` is never near.
std::string_view NearestName(std::string_view wrong, const std::vector<std::string_view>& names);

}  // namespace wan::server
