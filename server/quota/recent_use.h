// How long each principal has lately held the device. The queue orders principals by it.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "absl/time/time.h"

namespace wan::server {

// Counts the seconds for which each principal's jobs held the device; a second counts half after
// kHalfLife, a quarter after twice that. So earlier use delays a principal only briefly, and
// principals without recent use are forgotten. Not thread-safe.
class RecentUse {
 public:
  static constexpr absl::Duration kHalfLife = absl::Hours(1);

  // Counts `held` seconds that were used at `when`, which may lie before earlier calls' times.
  // Negative seconds take back what an earlier call with the same `when` has counted.
  void Add(const std::string& principal, absl::Duration held, absl::Time when);

  // Never negative.
  absl::Duration Of(const std::string& principal, absl::Time now) const;

  // The number of principals that are remembered.
  size_t size() const { return uses_.size(); }

 private:
  struct Use {
    double seconds = 0;  // as they count at `at`
    absl::Time at;
  };

  void ForgetNegligible(absl::Time now);

  std::unordered_map<std::string, Use> uses_;
  // When this many principals are remembered, those whose use has become negligible are forgotten.
  size_t forget_at_ = 1024;
};

}  // namespace wan::server
