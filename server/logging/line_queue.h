// A queue of log lines with a thread that writes them, so that a stalled reader of the log blocks
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

// Thread-safe. The lines are written in the order in which they were pushed. When a line does not
// fit, lines are dropped until half of the room is free; then a notice says how many were dropped.
class LineQueue {
 public:
  // Writes one line, which ends with a newline; the function may block. Returns 0, or the errno of
  // the failure.
  using Write = std::function<int(std::string_view line)>;
  struct Options {
    // Maximum number of bytes of the lines in the queue, including the one that is being written.
    size_t most_bytes = size_t{4} << 20;
    // How long the destructor waits for the remaining lines.
    absl::Duration last_lines = absl::Seconds(1);
    // The queue calls `failed` on its thread with the errno of each failed Write, and never after
    // the queue's destruction. `failed` must not block.
    std::function<void(int error)> failed = {};
  };

  // `clock` must outlive the queue. If `write` does not return, it may be running even after the
  // queue is destroyed.
  LineQueue(Write write, Clock& clock, Options options);
  LineQueue(Write write, Clock& clock) : LineQueue(std::move(write), clock, Options()) {}
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;
  // Waits at most Options::last_lines until the lines are written, and drops the rest.
  ~LineQueue();

  // Starts the thread that writes. Call Start once, before the first Push. `notice` returns the
  // line that says how many lines were dropped; it must not call Push.
  void Start(std::function<std::string(int64_t dropped)> notice);

  // Queues the line, or drops it if the queue is full. Never waits for a line to be written.
  void Push(std::string line);

  // Waits until all lines that were queued before are written. Returns false if they are not
  // written after `most`.
  bool Flush(absl::Duration most);

  // Number of lines that were dropped since the start.
  int64_t dropped() const;

  // Number of bytes in the queue. Takes no lock, so that a signal handler may call waiting_bytes().
  int64_t waiting_bytes() const;

 private:
  struct State;

  const std::shared_ptr<State> state_;  // the thread may outlive the queue
  Clock& clock_;
  const absl::Duration last_lines_;
};

}  // namespace wan::server
