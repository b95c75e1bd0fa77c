// Sums the seconds that were used in the last 24 hours.
#pragma once

#include <cstdint>
#include <map>

#include "absl/time/time.h"

namespace wan::server {

// Seconds that were counted in one minute leave the window together, 24 hours after that minute has
// ended. So a window holds at most 1,441 numbers. Not thread-safe.
class UseWindow {
 public:
  static constexpr absl::Duration kLength = absl::Hours(24);

  // Counts seconds that were used until `when`, which may lie before earlier calls' times.
  void Add(absl::Duration used, absl::Time when);

  // Returns the seconds in the window at `now`.
  absl::Duration Sum(absl::Time now) const;

  // Returns the time until at most `room` is left in the window, if nothing is added; zero if that
  // is already so. `room` is not negative.
  absl::Duration TimeUntil(absl::Duration room, absl::Time now) const;

 private:
  std::map<int64_t, absl::Duration> minutes_;  // by minutes since the epoch
  absl::Duration sum_;
};

}  // namespace wan::server
