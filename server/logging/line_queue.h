// A queue of log lines with a writing thread of its own, so that a stalled reader of the log blocks
// no caller.
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

// Thread-safe. Lines are written in the order in which they came. Once a line does not fit, lines
// are dropped until half of the room is free; a notice in their place then says how many.
class LineQueue {
 public:
  // Writes one line, with its newline; may block. Returns 0, or errno.
  using Write = std::function<int(std::string_view line)>;
  struct Options {
    // Most bytes of the waiting lines and the one that is being written.
    size_t most_bytes = size_t{4} << 20;
    // How long the destructor waits for the remaining lines.
    absl::Duration last_lines = absl::Seconds(1);
    // Called with errors of Write, on the queue's thread. It must not block, and is not called
    // after the queue's destruction.
    std::function<void(int error)> failed = {};
  };

  // `clock` must outlive the queue. `write` may outlive the queue, because a write that never
  // returns keeps its thread.
  LineQueue(Write write, Clock& clock, Options options);
  LineQueue(Write write, Clock& clock) : LineQueue(std::move(write), clock, Options()) {}
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;
  // Waits for the lines for a bounded time, and drops those that are left.
  ~LineQueue();

  // Begins to write. `notice` makes the line that says how many were dropped; it must not push.
  // Call once, before the first Push.
  void Start(std::function<std::string(int64_t dropped)> notice);

  // Takes the line or drops it. Never waits for a write.
  void Push(std::string line);

  // Waits until all lines taken before are written. Returns false if they are not after `most`.
  bool Flush(absl::Duration most);

  // Lines that were dropped since the start.
  int64_t dropped() const;

  // Bytes that wait. Takes no lock, so that a signal handler may call it.
  int64_t waiting_bytes() const;

 private:
  struct State;

  const std::shared_ptr<State> state_;  // the thread may outlive the queue
  Clock& clock_;
  const absl::Duration last_lines_;
};

}  // namespace wan::server
