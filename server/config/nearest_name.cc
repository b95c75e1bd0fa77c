#include "server/config/nearest_name.h"

#include <algorithm>
#include <cstddef>

namespace wan::server {
namespace {

// Returns how many changes of single characters turn one word into the other. Abseil's edit
// distance is in an internal header.
size_t EditDistance(std::string_view from, std::string_view to) {
  std::vector<size_t> row(to.size() + 1);
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replaced = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[to.size()];
}

}  // namespace

std::string_view NearestName(std::string_view wrong, const std::vector<std::string_view>& names) {
  std::string_view nearest;
  size_t least = wrong.size() / 3 + 2;
  for (const std::string_view name : names) {
    const size_t distance = EditDistance(wrong, name);
    if (distance >= least || distance >= std::max(wrong.size(), name.size())) continue;
    least = distance;
    nearest = name;
  }
  return nearest;
}

}  // namespace wan::server
