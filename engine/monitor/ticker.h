// A thread that calls a function periodically.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan {

// From construction to destruction a thread of its own calls `work` at every interval, one call at
// a time; calls that would overlap with a slow one are left out.
//
// `work` may hang, as in a driver that has lost its card. The destructor then waits for `patience`,
// in real time, and abandons the thread, so `work` must own what it uses. The clock must outlive
// both.
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
