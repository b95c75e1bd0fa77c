// A change of weights that is made on the device and leaves the base's copy alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wan {

// What a patch may have in fp32 of one tensor at a time, in elements: 64 MiB.
inline constexpr int64_t kPatchElements = int64_t{1} << 24;

// Thread-safe. What LibTorch throws passes through.
class WeightPatch {
 public:
  virtual ~WeightPatch() = default;

  // Whether Apply changes a group of the component (its numbers: ComponentWeights::BeginGroup).
  virtual bool Touches(size_t group) const = 0;

  // The group's tensors hold the base's bits and get the patched ones, by work in the computing
  // queue. That work may read host memory of the patch after the call has returned or thrown: the
  // caller keeps the patch alive until the queue is past it.
  virtual void Apply(size_t group) const = 0;
};

}  // namespace wan
