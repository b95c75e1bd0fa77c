// Divides what a group of ranks computes together.
#pragma once

#include <cstdint>
#include <vector>

namespace wan {

// `count` things from `first` on.
struct Share {
  int64_t first = 0;
  int64_t count = 0;

  bool operator==(const Share&) const = default;
};

// Returns the share of each of `ranks` ranks in `total` things, in order. The shares differ by one
// at most, and the first ones are the larger. `ranks` must be positive.
std::vector<Share> SharesOf(int64_t total, int ranks);

}  // namespace wan
