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

  // Fills the tensors of `groups` (numbers as in ComponentWeights::BeginGroup), which must have
  // memory, with the bits that loading gave them. Returns when everything has been read; work that
  // is queued after that finds the bits. DATA_LOSS, which names the file, if the file has become
  // shorter; CANCELLED after a stop request; the bits are undefined then. Exceptions of LibTorch
  // pass through.
  virtual absl::Status Read(std::span<const size_t> groups, WeightMover& mover,
                            const std::stop_token& stop) const = 0;
};

}  // namespace wan
