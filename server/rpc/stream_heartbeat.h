// Sends heartbeats on idle streams, so that proxies do not close them.
#pragma once

#include <functional>
#include <string>

#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/calls/wake_timer.h"

namespace wan::server {

// Shared settings of the heartbeats of a service's streams. Both must outlive the streams.
struct HeartbeatOptions {
  Clock& clock;
  WakeTimer& timer;
  // How long a stream may carry nothing; zero: for ever.
  absl::Duration interval;
};

// For one stream, which calls it from Produce, one call at a time.
class StreamHeartbeat {
 public:
  explicit StreamHeartbeat(const HeartbeatOptions& options) : options_(options) {}
  StreamHeartbeat(const StreamHeartbeat&) = delete;
  StreamHeartbeat& operator=(const StreamHeartbeat&) = delete;
  ~StreamHeartbeat();

  // A message is on its way: the time begins anew.
  void MessageSent();

  // There is nothing to send. Returns whether a heartbeat is to be sent instead; otherwise `wake`
  // will be called when it is time to ask again, on the timer's thread, and must not keep the
  // stream.
  bool Due(const std::function<void()>& wake);

 private:
  const HeartbeatOptions options_;
  std::string timer_key_;
  absl::Time sent_ = absl::InfinitePast();
  absl::Time wake_at_ = absl::InfinitePast();
};

}  // namespace wan::server
