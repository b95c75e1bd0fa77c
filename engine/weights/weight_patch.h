// Changes weights on the device and leaves their copy in host memory as it is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wan {

// Most elements of one tensor that a patch may hold in fp32 at a time: 64 MiB.
inline constexpr int64_t kPatchElements = int64_t{1} << 24;

// Thread-safe. Exceptions of LibTorch pass through.
class WeightPatch {
 public:
  virtual ~WeightPatch() = default;

  // Whether Apply changes the group with this number (see ComponentWeights::BeginGroup).
  virtual bool Touches(size_t group) const = 0;

  // Queues work on the computing queue that patches the group's tensors, which must hold the base's
  // bits. That work may read host memory of the patch after this call has returned or thrown, so
  // keep the patch alive until the queue is past it.
  virtual void Apply(size_t group) const = 0;
};

}  // namespace wan
