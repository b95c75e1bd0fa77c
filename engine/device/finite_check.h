// Checks whether all values of a tensor are finite, without making the host wait once more.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>

namespace wan {

// The object checks one tensor at a time by the sum of its values, which is finite only if every
// value is. A check costs one kernel and a copy of four bytes. If the sum exceeds fp32's range
// (about 3e38), the tensor counts as not finite; no model's sums come near this limit. Not
// thread-safe. Exceptions of LibTorch pass through.
class FiniteCheck {
 public:
  FiniteCheck() = default;
  FiniteCheck(const FiniteCheck&) = delete;
  FiniteCheck& operator=(const FiniteCheck&) = delete;
  // The destructor waits if the device may still write to this object's memory.
  ~FiniteCheck();

  // Queues the sum of `x` (any floating-point dtype) on the current stream of its device, and a
  // copy of the sum to pinned memory. The call does not wait for the device. Work that is queued
  // later on that stream may change `x`. A second call of Begin replaces the tensor.
  void Begin(const at::Tensor& x);

  // Returns whether all values of the tensor given to Begin are finite. The call waits for the sum,
  // so call IsFinite when the host has waited for the device anyway.
  bool IsFinite();

 private:
  at::Tensor sum_;                     // the sum, copied to host memory
  at::Tensor locked_;                  // pinned memory; undefined on a CPU
  std::optional<c10::Event> arrival_;  // set while the sum is on its way to the host
};

}  // namespace wan
