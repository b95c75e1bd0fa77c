// A back-off clock on which no time passes.
#pragma once

#include <functional>
#include <stop_token>
#include <vector>

#include "absl/time/time.h"
#include "client/retry.h"

namespace wan::fakes {

// For one thread.
class RecordingBackoffClock final : public client::BackoffClock {
 public:
  void Wait(absl::Duration delay, const std::stop_token&) override {
    delays.push_back(delay);
    if (on_wait) on_wait();
  }

  // Every wait so far.
  std::vector<absl::Duration> delays;
  // What happens meanwhile.
  std::function<void()> on_wait;
};

}  // namespace wan::fakes
