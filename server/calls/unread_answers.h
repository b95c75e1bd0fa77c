// Detects answers that callers do not read.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>

#include "absl/time/time.h"
#include "server/calls/stall_watch.h"

namespace wan::server {

// Watches many calls, each with one answer. Most callers read an answer at once, so watching one
// costs only a list entry, and the timer is set only for the oldest. Thread-safe. Clock and timer
// must outlive the watched answers.
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

  // Call Begin when the server begins to send an answer. Calls `stalled` once, on the timer's
  // thread, if End is not called within Options::longest. `stalled` must be quick and must not call
  // this object.
  Entry Begin(std::function<void()> stalled);

  // Call End when the caller has read the answer, or when the server gives it up. `stalled` is not
  // called after End has returned.
  void End(Entry entry);

 private:
  struct State;

  const std::shared_ptr<State> state_;
};

}  // namespace wan::server
