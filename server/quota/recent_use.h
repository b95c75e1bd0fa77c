// Counts the recent device time of each principal, by which the queue orders principals.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "absl/time/time.h"

namespace wan::server {

// The weight of a used second decays exponentially with kHalfLife, so past use delays a principal
// only for a while. Principals whose use has decayed are forgotten. Not thread-safe.
class RecentUse {
 public:
  static constexpr absl::Duration kHalfLife = absl::Hours(1);

  // Adds the device time `held`, used at `when`, which may be earlier than in previous calls. A
  // negative `held` cancels an earlier call with the same `when`.
  void Add(const std::string& principal, absl::Duration held, absl::Time when);

  // Returns the principal's decayed use at `now`; never negative.
  absl::Duration Of(const std::string& principal, absl::Time now) const;

  // Number of remembered principals.
  size_t size() const { return uses_.size(); }

 private:
  struct Use {
    double seconds = 0;  // decayed use at the time `at`
    absl::Time at;
  };

  void ForgetNegligible(absl::Time now);

  std::unordered_map<std::string, Use> uses_;
  // Principals with negligible use are removed when this many are remembered.
  size_t forget_at_ = 1024;
};

}  // namespace wan::server
