// Calls a function periodically on its own thread.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan {

// From construction to destruction a thread calls `work` at every interval. Calls never overlap:
// those that would overlap with a slow call are skipped.
//
// `work` may hang, for example in a driver that has lost its card. The destructor then waits for
// `patience` (real time) and abandons the thread, so `work` must own everything it uses. The clock
// must outlive object and thread.
class Ticker {
 public:
  Ticker(Clock& clock, absl::Duration interval, std::function<void()> work,
         absl::Duration patience = absl::Seconds(2));
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

 private:
  struct State;
  const absl::Duration patience_;
  const std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace wan
