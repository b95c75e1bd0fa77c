#include "server/quota/use_window.h"

namespace wan::server {
namespace {

int64_t MinuteOf(absl::Time time) { return absl::ToUnixSeconds(time) / 60; }

// Returns the time at which a minute's sum leaves the window.
absl::Time EndOf(int64_t minute) {
  return absl::FromUnixSeconds((minute + 1) * 60) + UseWindow::kLength;
}

}  // namespace

void UseWindow::Add(absl::Duration used, absl::Time when) {
  minutes_[MinuteOf(when)] += used;
  sum_ += used;
  // Remove the sums that leave the window before `when`, because `when` is never in the future.
  while (EndOf(minutes_.begin()->first) <= when) {
    sum_ -= minutes_.begin()->second;
    minutes_.erase(minutes_.begin());
  }
}

absl::Duration UseWindow::Sum(absl::Time now) const {
  absl::Duration left = sum_;
  for (const auto& [minute, used] : minutes_) {
    if (EndOf(minute) > now) break;
    left -= used;
  }
  return left;
}

absl::Duration UseWindow::TimeUntil(absl::Duration room, absl::Time now) const {
  if (Sum(now) <= room) return absl::ZeroDuration();
  absl::Duration left = sum_;
  for (const auto& [minute, used] : minutes_) {
    left -= used;
    if (left <= room) return EndOf(minute) - now;
  }
  return kLength;
}

}  // namespace wan::server
