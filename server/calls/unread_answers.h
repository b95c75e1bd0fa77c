// Detects answers that callers do not take.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>

#include "absl/time/time.h"
#include "server/calls/stall_watch.h"

namespace wan::server {

// For many calls with one answer each. Most answers are taken at once, so an answer costs an entry
// of a list, and the timer is set for the oldest one alone. Thread-safe. Clock and timer are used
// for as long as answers are watched.
class UnreadAnswers {
  struct Answer {
    absl::Time end;
    std::function<void()> stalled;
    bool told = false;
  };

 public:
  using Entry = std::list<Answer>::iterator;

  explicit UnreadAnswers(const StallWatch::Options& options);
  UnreadAnswers(const UnreadAnswers&) = delete;
  UnreadAnswers& operator=(const UnreadAnswers&) = delete;

  // An answer is sent. `stalled` is called once when it has not been taken in its time, on the
  // timer's thread. It must be quick, and must not call this object.
  Entry Begin(std::function<void()> stalled);

  // The answer was taken, or given up. `stalled` does not run any more when this returns.
  void End(Entry entry);

 private:
  struct State;

  const std::shared_ptr<State> state_;
};

}  // namespace wan::server
