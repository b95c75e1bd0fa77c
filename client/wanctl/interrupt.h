// Converts Ctrl-C to a stop request.
#pragma once

#include <stop_token>
#include <thread>

namespace wan::client {

// While this object lives, the first SIGINT or SIGTERM requests a stop, and a second one ends the
// process with `exit_code`. Create the object before any other thread, because threads inherit the
// set of blocked signals. Only one such object may exist at a time.
class InterruptHandler {
 public:
  explicit InterruptHandler(int exit_code);
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;
  ~InterruptHandler();

  std::stop_token stop() const { return stop_.get_token(); }

 private:
  std::stop_source stop_;
  // The descriptor becomes readable when the handler's thread should end.
  int end_fd_;
  int signal_fd_;
  std::thread thread_;
};

}  // namespace wan::client
