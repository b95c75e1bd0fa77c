// Detects answers that callers do not read.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>

#include "absl/time/time.h"
#include "server/calls/stall_watch.h"

namespace wan::server {

// Watches many calls with one answer each. Most answers are read at once, so an answer costs only a
// list entry, and the timer is set only for the oldest one. Thread-safe. Clock and timer must
// outlive the watched answers.
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

  // Call it when an answer is being sent. `stalled` is called once, on the timer's thread, if End
  // is not called within Options::longest. It must be quick and must not call this object.
  Entry Begin(std::function<void()> stalled);

  // Call it when the answer was read or given up. `stalled` is not called after this returns.
  void End(Entry entry);

 private:
  struct State;

  const std::shared_ptr<State> state_;
};

}  // namespace wan::server
