// A queue of log lines with its own writing thread, so that a stalled reader of the log blocks no
// caller.
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

// Thread-safe. Lines are written in order. When a line does not fit, lines are dropped until half
// of the room is free; then a notice says how many.
class LineQueue {
 public:
  // Writes one line, which ends with a newline; may block. Returns 0 or errno.
  using Write = std::function<int(std::string_view line)>;
  struct Options {
    // Most bytes of the waiting lines and the one that is being written.
    size_t most_bytes = size_t{4} << 20;
    // How long the destructor waits for the remaining lines.
    absl::Duration last_lines = absl::Seconds(1);
    // Called on the queue's thread with errors of Write. Must not block; not called after the
    // queue's destruction.
    std::function<void(int error)> failed = {};
  };

  // `clock` must outlive the queue. `write` may be running even after the queue's destruction, if
  // it does not return.
  LineQueue(Write write, Clock& clock, Options options);
  LineQueue(Write write, Clock& clock) : LineQueue(std::move(write), clock, Options()) {}
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;
  // Waits up to Options::last_lines for the waiting lines, and drops the rest.
  ~LineQueue();

  // Starts the thread. Call it once, before the first Push. `notice` returns the line that says how
  // many lines were dropped; it must not call Push.
  void Start(std::function<std::string(int64_t dropped)> notice);

  // Queues the line or drops it. Never waits for a write.
  void Push(std::string line);

  // Waits until all lines queued before are written. Returns false if they are not after `most`.
  bool Flush(absl::Duration most);

  // Number of lines dropped since the start.
  int64_t dropped() const;

  // Number of waiting bytes. Takes no lock, so that a signal handler may call it.
  int64_t waiting_bytes() const;

 private:
  struct State;

  const std::shared_ptr<State> state_;  // the thread may outlive the queue
  Clock& clock_;
  const absl::Duration last_lines_;
};

}  // namespace wan::server
