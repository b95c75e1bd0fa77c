// Reads the weights of a component again from their checkpoint, after their memory was freed.
#pragma once

#include <cstddef>
#include <span>
#include <stop_token>

#include "absl/status/status.h"
#include "engine/weights/weight_mover.h"

namespace wan {

// Thread-safe.
class WeightReader {
 public:
  virtual ~WeightReader() = default;

  // Fills the tensors of `groups` (numbered as in ComponentWeights::BeginGroup) with the bits that
  // loading gave them. The tensors must have device memory. Work that is queued after the call sees
  // the bits. DATA_LOSS, naming the file, if a file was truncated; CANCELLED after a stop request.
  // After an error the bits are undefined. Exceptions of LibTorch pass through.
  virtual absl::Status Read(std::span<const size_t> groups, WeightMover& mover,
                            const std::stop_token& stop) const = 0;
};

}  // namespace wan
