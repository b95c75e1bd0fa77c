// Calls a function at regular intervals on a thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan {

// As long as the object lives, its thread calls `work` at every interval. Calls never overlap: if a
// call takes long, the calls that would overlap with it are skipped.
//
// `work` may hang, for example in a driver that has lost its card. In that case the destructor
// waits for `patience` (of real time) and abandons the thread. So `work` must own everything that
// it uses. The clock must outlive the object and the thread.
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
