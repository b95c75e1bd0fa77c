// The interface of a patch: it changes weights on the device but not their copy in host memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wan {

// Most elements of a tensor that a patch handles at a time; 64 MiB in fp32.
inline constexpr int64_t kPatchElements = int64_t{1} << 24;

// Thread-safe. Exceptions of LibTorch pass through.
class WeightPatch {
 public:
  virtual ~WeightPatch() = default;

  // Whether Apply changes the group with this number (see ComponentWeights::BeginGroup).
  virtual bool Touches(size_t group) const = 0;

  // Queues work on the computing queue that patches the group's tensors, which must hold the
  // unpatched bits. The queued work may read the patch's host memory, also after this call has
  // thrown: keep the patch alive until it is done.
  virtual void Apply(size_t group) const = 0;
};

}  // namespace wan
