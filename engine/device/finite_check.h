// Checks whether all values of a tensor are finite, without an extra wait.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>

namespace wan {

// Checks one tensor at a time by its sum, which is finite only if every value is. It costs one
// kernel and a copy of four bytes. If the sum exceeds fp32's range (about 3e38), the values count
// as not finite; no model comes near that. Not thread-safe. Throws what LibTorch throws.
class FiniteCheck {
 public:
  FiniteCheck() = default;
  FiniteCheck(const FiniteCheck&) = delete;
  FiniteCheck& operator=(const FiniteCheck&) = delete;
  // Waits if the device may still write into this object's memory.
  ~FiniteCheck();

  // Queues the sum of `x` (floating point) on its device's current stream, and a copy of the sum to
  // pinned memory. Does not wait for the device. Later work on that stream may change `x`. Another
  // call replaces the tensor.
  void Begin(const at::Tensor& x);

  // Returns whether all values of Begin's tensor are finite. Waits for the sum, so call it where
  // the device has been waited for anyway.
  bool IsFinite();

 private:
  at::Tensor sum_;                     // the sum, in host memory
  at::Tensor locked_;                  // pinned; undefined on a CPU
  std::optional<c10::Event> arrival_;  // set while the sum is being copied
};

}  // namespace wan
