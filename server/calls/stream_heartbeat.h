// Says when to send heartbeats on idle streams, so that proxies do not close the streams.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/calls/wake_timer.h"

namespace wan::server {

// Settings for the heartbeats of a service's streams. Clock and timer must outlive the streams.
struct HeartbeatOptions {
  Clock& clock;
  WakeTimer& timer;
  // A heartbeat is due when a stream has sent nothing for this time; zero: never.
  absl::Duration interval;
};

// The heartbeat of one stream. Not thread-safe.
class StreamHeartbeat {
 public:
  explicit StreamHeartbeat(const HeartbeatOptions& options) : options_(options) {}
  StreamHeartbeat(const StreamHeartbeat&) = delete;
  StreamHeartbeat& operator=(const StreamHeartbeat&) = delete;
  ~StreamHeartbeat();

  // Call MessageSent when the stream sends a message; the interval then begins again.
  void MessageSent();

  // Call Due when the stream has nothing else to send. Returns whether to send a heartbeat now. If
  // the result is false, calls `wake` on the timer's thread when the stream should call Due again;
  // `wake` must not own the stream.
  bool Due(const std::function<void()>& wake);

 private:
  const HeartbeatOptions options_;
  std::string timer_key_;
  absl::Time sent_ = absl::InfinitePast();
  absl::Time wake_at_ = absl::InfinitePast();
};

}  // namespace wan::server
