// Finds out whether all values of a tensor are finite, without an extra wait.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>

namespace wan {

// Checks one tensor at a time by its sum, which is finite only if every value is, and costs one
// kernel and a copy of four bytes. Values whose sum leaves fp32's range, about 3e38, count as not
// finite as well; nothing that a model computes comes near it. Not thread-safe. Throws what
// LibTorch throws.
class FiniteCheck {
 public:
  FiniteCheck() = default;
  FiniteCheck(const FiniteCheck&) = delete;
  FiniteCheck& operator=(const FiniteCheck&) = delete;
  // Waits for the device where it still writes into this object's memory.
  ~FiniteCheck();

  // Queues the sum of `x`, floating point, on the current stream of its device, and the copy of the
  // sum to page-locked memory. Does not wait for the device. Work that is queued there afterwards
  // may change `x`. A further call replaces the tensor.
  void Begin(const at::Tensor& x);

  // Returns whether all values of the tensor given to Begin are finite. Waits until the device has
  // computed the sum; so call it where the device has been waited for anyway.
  bool IsFinite();

 private:
  at::Tensor sum_;                     // one value in host memory
  at::Tensor locked_;                  // page-locked; undefined until a GPU needs it
  std::optional<c10::Event> arrival_;  // set while the sum is on its way
};

}  // namespace wan
