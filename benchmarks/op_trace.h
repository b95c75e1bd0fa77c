// Time that a device spends in each operator, from events around the calls.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace wan {

struct OpTime {
  std::string op;  // name and shapes of the inputs
  int64_t calls = 0;
  double seconds = 0;
};

// From construction to Finish() every outermost operator of this thread is timed, ATen's and ours.
// An operator's time is that of the device's stream between the call's begin and end, so that it
// includes waiting for the host where the host is the slower one.
class OpTrace {
 public:
  explicit OpTrace(at::Device device);
  ~OpTrace();
  OpTrace(const OpTrace&) = delete;
  OpTrace& operator=(const OpTrace&) = delete;

  // Each of the two ends the trace; call only one of them, once.
  //
  // Returns the operators by falling time, calls of the same shapes together.
  std::vector<OpTime> Finish();
  // Returns every call by itself, in the order in which they began.
  std::vector<OpTime> FinishInOrder();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wan
