#include "server/retention/wall_clock_guard.h"

namespace wan::server {
namespace {

constexpr absl::Duration kJump = absl::Minutes(10);
constexpr absl::Duration kDoubt = absl::Hours(24);

}  // namespace

WallClockGuard::WallClockGuard(Clock& clock) : clock_(clock), trusted_(Offset()), seen_(trusted_) {}

absl::Duration WallClockGuard::Offset() const {
  return clock_.Now() - absl::UnixEpoch() - absl::Nanoseconds(clock_.MonotonicNanos());
}

bool WallClockGuard::AgesHold() {
  const absl::Duration offset = Offset();
  const int64_t now = clock_.MonotonicNanos();
  if (offset > seen_ + kJump) believed_at_nanos_ = now + absl::ToInt64Nanoseconds(kDoubt);
  seen_ = offset;
  // After a jump backward no age is too high, so ages can be trusted.
  if (offset > trusted_ + kJump && now < believed_at_nanos_) return false;
  trusted_ = offset;
  return true;
}

}  // namespace wan::server
