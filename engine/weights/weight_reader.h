// How the weights of a component are read again from their checkpoint when their memory was given
// back.
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

  // Fills the tensors of `groups` (their numbers: ComponentWeights::BeginGroup), which have memory,
  // with the bits that loading gave them. Returns when everything has been read; what is computed
  // from there on finds the bits. DATA_LOSS that names the file if the file has become shorter,
  // CANCELLED after a stop request; the bits are undefined then. What LibTorch throws passes
  // through.
  virtual absl::Status Read(std::span<const size_t> groups, WeightMover& mover,
                            const std::stop_token& stop) const = 0;
};

}  // namespace wan
