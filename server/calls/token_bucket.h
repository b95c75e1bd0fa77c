// Limits a rate, but allows bursts.
#pragma once

#include "absl/time/time.h"

namespace wan::server {

// A bucket of tokens that refills at a steady rate.
class TokenBucket {
 public:
  struct Options {
    double most = 0;
    double per_second = 0;
    // How many tokens below zero the bucket may go.
    double debt = 0;
  };
  TokenBucket(const Options& options, absl::Time now)
      : options_(options), tokens_(options.most), at_(now) {}

  // Takes `count` tokens. Returns whether the bucket had them; if not, the bucket goes into debt.
  bool Take(double count, absl::Time now);
  // Returns how long the bucket takes to refill to zero; zero unless it is in debt.
  absl::Duration UntilDebtIsPaid(absl::Time now);
  bool IsFull(absl::Time now);

 private:
  void Refill(absl::Time now);

  Options options_;
  double tokens_;
  absl::Time at_;
};

}  // namespace wan::server
