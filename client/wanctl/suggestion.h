// Guesses the intended word for a misspelt one. All functions are pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan::client {

// Returns "; did you mean NAME?" for the first of `names` that differs from `word` by the fewest
// letters added, left out, replaced or swapped. Returns an empty text if more than one letter in
// three differs, unless a name begins with `word`.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& names);

}  // namespace wan::client
