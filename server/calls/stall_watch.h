// Detects a stream whose client does not read its messages.
#pragma once

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/calls/wake_timer.h"

namespace wan::server {

// Watches the writes of one stream. Calls of Begin, End and Stop must not overlap.
class StallWatch {
 public:
  struct Options {
    // Clock and timer must outlive the watch.
    Clock& clock;
    WakeTimer& timer;
    // Maximum time that one write may take.
    absl::Duration longest;
  };
  // The watch calls `stalled` on the timer's thread, once or twice, when a write has taken too
  // long. The function must be quick and must not call the watch.
  StallWatch(const Options& options, std::function<void()> stalled);
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;
  // Calls Stop if nobody has.
  ~StallWatch();

  // Call Begin before and End after each write.
  void Begin();
  void End();

  // `stalled` is not called after Stop has returned.
  void Stop();

 private:
  struct State;

  const std::shared_ptr<State> state_;
};

}  // namespace wan::server
