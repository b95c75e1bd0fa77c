// Guesses which of several names a mistyped name means.
#pragma once

#include <string_view>
#include <vector>

namespace wan::server {

// Returns the first of the names with the smallest edit distance to `wrong`; empty if none of them
// is near. A name that shares no character with `wrong` is never near.
std::string_view NearestName(std::string_view wrong, const std::vector<std::string_view>& names);

}  // namespace wan::server
