// The interface of a patch, which changes weights on the device but not their copies in host
// memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wan {

class WeightMover;

// The maximum number of elements of a tensor that a patch changes at a time; 64 MiB in fp32.
inline constexpr int64_t kPatchElements = int64_t{1} << 24;

// Thread-safe. Exceptions of LibTorch pass through.
class WeightPatch {
 public:
  virtual ~WeightPatch() = default;

  // Returns whether Apply changes the group with this number (see ComponentWeights::BeginGroup).
  virtual bool Touches(size_t group) const = 0;

  // Queues work on the computing queue that patches the group's tensors, which must hold the
  // unpatched bits. The queued work may read the patch's host memory, also after this call has
  // thrown: keep the patch alive until it is done. `mover` must belong to the tensors' device.
  // Throws StatusException if the patch needs a file that can no longer be read.
  virtual void Apply(size_t group, WeightMover& mover) const = 0;
};

}  // namespace wan
