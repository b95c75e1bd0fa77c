#include "engine/costs/share.h"

namespace wan {

std::vector<Share> SharesOf(int64_t total, int ranks) {
  std::vector<Share> shares;
  int64_t first = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const int64_t count = total / ranks + (rank < total % ranks ? 1 : 0);
    shares.push_back({first, count});
    first += count;
  }
  return shares;
}

}  // namespace wan
