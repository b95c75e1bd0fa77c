// Divides work among the ranks of a group.
#pragma once

#include <cstdint>
#include <vector>

namespace wan {

// A share: `count` consecutive items, starting with item `first`.
struct Share {
  int64_t first = 0;
  int64_t count = 0;

  bool operator==(const Share&) const = default;
};

// Returns each rank's share of `total` items, in order. Shares differ by at most one item; larger
// shares come first. `ranks` must be positive.
std::vector<Share> SharesOf(int64_t total, int ranks);

}  // namespace wan
