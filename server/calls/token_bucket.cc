#include "server/calls/token_bucket.h"

#include <algorithm>

namespace wan::server {

void TokenBucket::Refill(absl::Time now) {
  tokens_ =
      std::min(options_.most, tokens_ + options_.per_second * absl::ToDoubleSeconds(now - at_));
  at_ = now;
}

bool TokenBucket::Take(double count, absl::Time now) {
  Refill(now);
  tokens_ -= count;
  const bool there = tokens_ >= 0;
  tokens_ = std::max(tokens_, -options_.debt);
  return there;
}

absl::Duration TokenBucket::UntilDebtIsPaid(absl::Time now) {
  Refill(now);
  return tokens_ >= 0 ? absl::ZeroDuration() : absl::Seconds(-tokens_ / options_.per_second);
}

bool TokenBucket::IsFull(absl::Time now) {
  Refill(now);
  return tokens_ >= options_.most;
}

}  // namespace wan::server
