// Guesses what a misspelt word was meant to be. All functions are pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wan::client {

// Returns "; did you mean NAME?" for the one of `names` that is nearest to `word`, counted in
// letters that are added, left out, replaced or swapped with their neighbour. Returns an empty text
// if none is near: more than one letter in three would be wrong. A name that begins with the whole
// of `word` is near too. Of equally near names the first is taken.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& names);

}  // namespace wan::client
