#include "server/jobs/start_time.h"

#include <algorithm>
#include <functional>

namespace wan::server {
namespace {

// A longer queue is computed as this many equal jobs; the error of the result is at most the time
// of one such equal job.
constexpr int kMostPieces = 64;

}  // namespace

absl::Duration StartBehind(std::vector<absl::Duration> free, int jobs, absl::Duration work) {
  if (free.size() == 1) return free.front() + work;
  const int pieces = std::min(jobs, kMostPieces);
  // The group that will be free first takes the next job.
  std::make_heap(free.begin(), free.end(), std::greater<>());
  for (int piece = 0; piece < pieces; ++piece) {
    std::pop_heap(free.begin(), free.end(), std::greater<>());
    free.back() += work / pieces;
    std::push_heap(free.begin(), free.end(), std::greater<>());
  }
  return free.front();
}

}  // namespace wan::server
