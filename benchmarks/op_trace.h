// Measures the time that a device spends in each operator, with events around the calls.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace wan {

struct OpTime {
  std::string op;  // name of the operator and shapes of its inputs
  int64_t calls = 0;
  double seconds = 0;
};

// From construction to Finish() every outermost operator of this thread is timed, both ATen's and
// ours. An operator's time runs on the device's stream from begin to end of the call, so it
// includes waiting for a slower host.
class OpTrace {
 public:
  explicit OpTrace(at::Device device);
  ~OpTrace();
  OpTrace(const OpTrace&) = delete;
  OpTrace& operator=(const OpTrace&) = delete;

  // Both Finish functions end the trace. Call only one of them, once.
  //
  // Returns the operators sorted by time, longest first, with calls of equal shapes added up.
  std::vector<OpTime> Finish();
  // Returns each call separately, in the order of their begins.
  std::vector<OpTime> FinishInOrder();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace wan
