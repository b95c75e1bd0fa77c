// Sums the device time that was used in the last 24 hours.
#pragma once

#include <cstdint>
#include <map>

#include "absl/time/time.h"

namespace wan::server {

// Stores one sum for each minute. A sum leaves the window 24 hours after its minute has ended, so a
// window holds at most 1,441 sums. Not thread-safe.
class UseWindow {
 public:
  static constexpr absl::Duration kLength = absl::Hours(24);

  // Adds time that was used until `when`; `when` may be earlier than in previous calls.
  void Add(absl::Duration used, absl::Time when);

  // Returns the time used in the window that ends at `now`.
  absl::Duration Sum(absl::Time now) const;

  // Returns the time until the sum has fallen to `room` if nothing is added; zero if the sum is not
  // above `room`. `room` must not be negative.
  absl::Duration TimeUntil(absl::Duration room, absl::Time now) const;

 private:
  std::map<int64_t, absl::Duration> minutes_;  // the key is the minute since the epoch
  absl::Duration sum_;
};

}  // namespace wan::server
