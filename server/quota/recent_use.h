// Counts the recent device time of each principal, by which the queue orders principals.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "absl/time/time.h"

namespace wan::server {

// The weight of a second decays exponentially after its use, with the half-life kHalfLife, so past
// use delays a principal only for a while. The object forgets principals whose use has decayed to
// almost nothing. Not thread-safe.
class RecentUse {
 public:
  static constexpr absl::Duration kHalfLife = absl::Hours(1);

  // Adds the device time `held` that was used at `when`; `when` may be earlier than in previous
  // calls. A negative `held` reverts an earlier call with the same `when`.
  void Add(const std::string& principal, absl::Duration held, absl::Time when);

  // Returns the principal's decayed use at `now`; never negative.
  absl::Duration Of(const std::string& principal, absl::Time now) const;

  // Number of principals that have an entry.
  size_t size() const { return uses_.size(); }

 private:
  struct Use {
    double seconds = 0;  // use after decay, as of the time `at`
    absl::Time at;
  };

  void ForgetNegligible(absl::Time now);

  std::unordered_map<std::string, Use> uses_;
  // When the object has this many principals, it removes the principals with negligible use.
  size_t forget_at_ = 1024;
};

}  // namespace wan::server
