#include "server/calls/handshake_pace.h"

#include <algorithm>
#include <iterator>

namespace wan::server {

std::optional<absl::Duration> HandshakePace::Take(const std::string& address) {
  const absl::Time now = absl::UnixEpoch() + absl::Nanoseconds(clock_.MonotonicNanos());
  if (addresses_.size() >= forget_at_ && !addresses_.contains(address)) {
    for (auto entry = addresses_.begin(); entry != addresses_.end();) {
      entry = entry->second.IsFull(now) ? addresses_.erase(entry) : std::next(entry);
    }
    forget_at_ = std::max(size_t{1024}, 2 * addresses_.size());
  }
  TokenBucket& bucket = addresses_.try_emplace(address, of_address_, now).first->second;
  const absl::Duration longest = absl::Seconds(of_address_.debt / of_address_.per_second);
  if (bucket.UntilDebtIsPaid(now) >= longest) return std::nullopt;
  bucket.Take(1, now);
  return bucket.UntilDebtIsPaid(now);
}

}  // namespace wan::server
