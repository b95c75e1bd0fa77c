// A rate that may be exceeded for a while.
#pragma once

#include "absl/time/time.h"

namespace wan::server {

// Tokens that are spent at any pace and come back at a steady one.
class TokenBucket {
 public:
  struct Options {
    double most = 0;
    double per_second = 0;
    // Most tokens that a bucket may be in debt.
    double debt = 0;
  };
  TokenBucket(const Options& options, absl::Time now)
      : options_(options), tokens_(options.most), at_(now) {}

  // Returns whether the tokens were there. They are taken either way.
  bool Take(double count, absl::Time now);
  // Zero unless the bucket is in debt.
  absl::Duration UntilDebtIsPaid(absl::Time now);
  bool IsFull(absl::Time now);

 private:
  void Refill(absl::Time now);

  Options options_;
  double tokens_;
  absl::Time at_;
};

}  // namespace wan::server
