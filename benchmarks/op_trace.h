// Measures the time that a device spends in each operator, by events before and after each call.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace wan {

struct OpTime {
  std::string op;  // the operator's name, and the shapes of its inputs
  int64_t calls = 0;
  double seconds = 0;
};

// From construction until Finish(), every outermost operator of this thread is timed, whether it is
// ATen's or ours. An operator's time runs on the device's stream from the begin of the call to its
// end. So the time includes waits of the device for a slower host.
class OpTrace {
 public:
  explicit OpTrace(at::Device device);
  ~OpTrace();
  OpTrace(const OpTrace&) = delete;
  OpTrace& operator=(const OpTrace&) = delete;

  // Each of the two Finish functions ends the trace. Call only one of them, and only once.
  //
  // Returns the operators sorted by time, longest first. Calls with equal shapes are added up.
  std::vector<OpTime> Finish();
  // Returns every call, in the order in which the calls began.
  std::vector<OpTime> FinishInOrder();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wan
