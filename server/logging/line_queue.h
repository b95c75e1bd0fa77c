// Lines of a log that a thread of its own writes, so that a reader who stands still stops nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan::server {

// Thread-safe. Lines are written in the order in which they came. Once one does not fit, lines are
// dropped until half of the room is free again; a line in their place then says how many.
class LineQueue {
 public:
  // Writes one line, with its newline; may block. Returns 0, or errno.
  using Write = std::function<int(std::string_view line)>;
  struct Options {
    // Of the lines that wait, with the one that is being written.
    size_t most_bytes = size_t{4} << 20;
    // How long a queue that goes waits for what it still has.
    absl::Duration last_lines = absl::Seconds(1);
    // Is told of errors of Write, on the queue's thread. It must not block, and is not called once
    // the queue has gone.
    std::function<void(int error)> failed = {};
  };

  // `clock` must outlive the queue. `write` may outlive it: a write that never returns keeps its
  // thread.
  LineQueue(Write write, Clock& clock, Options options);
  LineQueue(Write write, Clock& clock) : LineQueue(std::move(write), clock, Options()) {}
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;
  // Waits for the lines for a moment, and drops those that are left.
  ~LineQueue();

  // Begins to write. `notice` makes the line that says how many were dropped; it must not push.
  // Once, before the first Push.
  void Start(std::function<std::string(int64_t dropped)> notice);

  // Takes the line, or drops it. Waits for no write.
  void Push(std::string line);

  // Waits until what was taken before is written. False if it is not after `most`.
  bool Flush(absl::Duration most);

  // Lines that were dropped since the start.
  int64_t dropped() const;

  // Bytes that wait. Takes no lock, so that a handler of signals may ask.
  int64_t waiting_bytes() const;

 private:
  struct State;

  const std::shared_ptr<State> state_;  // shared with the thread, which a write may keep
  Clock& clock_;
  const absl::Duration last_lines_;
};

}  // namespace wan::server
