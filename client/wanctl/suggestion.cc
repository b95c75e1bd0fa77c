#include "client/wanctl/suggestion.h"

#include <algorithm>

namespace wan::client {
namespace {

// Returns the optimal string alignment distance of two words.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

// Returns the word without a flag's dashes.
std::string_view Letters(std::string_view word) {
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

// Words longer than this are not compared, because that would take long.
constexpr size_t kLongestWord = 64;

}  // namespace

std::string DidYouMean(std::string_view word, const std::vector<std::string>& names) {
  const std::string_view letters = Letters(word);
  if (letters.empty() || letters.size() > kLongestWord) return "";
  const std::string* nearest = nullptr;
  size_t least = std::max<size_t>(1, letters.size() / 3) + 1;
  for (const std::string& name : names) {
    const bool begins = letters.size() >= 2 && Letters(name).starts_with(letters);
    const size_t distance = begins ? 1 : Distance(letters, Letters(name));
    if (distance < least) {
      least = distance;
      nearest = &name;
    }
  }
  return nearest == nullptr ? "" : "; did you mean " + *nearest + "?";
}

}  // namespace wan::client
