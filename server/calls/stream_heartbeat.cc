#include "server/calls/stream_heartbeat.h"

namespace wan::server {

StreamHeartbeat::~StreamHeartbeat() {
  if (!timer_key_.empty()) options_.timer.Remove(timer_key_);
}

void StreamHeartbeat::MessageSent() { sent_ = options_.clock.Steady().Now(); }

bool StreamHeartbeat::Due(const std::function<void()>& wake) {
  if (options_.interval == absl::ZeroDuration()) return false;
  const absl::Time now = options_.clock.Steady().Now();
  // The stream has just begun, so the interval begins now.
  if (sent_ == absl::InfinitePast()) sent_ = now;
  const absl::Time due = sent_ + options_.interval;
  if (now >= due) {
    sent_ = now;
    return true;
  }
  // Messages do not reset the timer: it fires once per interval, and Due compares the times again.
  if (now >= wake_at_) {
    if (timer_key_.empty()) timer_key_ = options_.timer.Add(wake);
    wake_at_ = due;
    options_.timer.WakeAt(timer_key_, due);
  }
  return false;
}

}  // namespace wan::server
