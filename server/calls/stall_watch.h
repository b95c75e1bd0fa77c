// Detects a stream whose reader does not take its messages.
#pragma once

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/calls/wake_timer.h"

namespace wan::server {

// For one stream. Begin, End and Stop are called one at a time.
class StallWatch {
 public:
  struct Options {
    // Both must outlive the watch.
    Clock& clock;
    WakeTimer& timer;
    // How long one write may take.
    absl::Duration longest;
  };
  // `stalled` is called when a write has taken too long, and perhaps once more, on the timer's
  // thread. It must be quick, and must not call the watch.
  StallWatch(const Options& options, std::function<void()> stalled);
  StallWatch(const StallWatch&) = delete;
  StallWatch& operator=(const StallWatch&) = delete;
  // Calls Stop.
  ~StallWatch();

  // A write begins, or has ended.
  void Begin();
  void End();

  // `stalled` does not run any more when this returns.
  void Stop();

 private:
  struct State;

  const std::shared_ptr<State> state_;
};

}  // namespace wan::server
