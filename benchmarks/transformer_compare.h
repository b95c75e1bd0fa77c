// Two ways to the same forward of a transformer, one after the other and in turns, so that clocks
// and heat are those of both.
#pragma once

#include <ATen/core/Tensor.h>

#include "absl/status/status.h"
#include "engine/models/video_transformer.h"
#include "engine/weights/component_weights.h"

namespace wan {

struct ComparedForward {
  VideoTransformer& transformer;
  ComponentWeights& weights;
  at::Device device;
  at::Tensor latents;  // [1, in_channels, T, H, W]
  at::Tensor timestep;
  int rounds = 1;
};

// Weights that are there against weights that are streamed. They must have a home on the host.
// Prints what streaming adds, and whether the results are the same bits.
absl::Status CompareStreaming(const ComparedForward& forward);

// Forwards of two texts one after the other against one batch of both. Prints the times and how far
// the results are apart.
absl::Status CompareGuidance(const ComparedForward& forward);

// Forwards without a gate against forwards that pass one, as a job's do so that it can be stopped.
// Prints what the gate adds, and whether the results are the same bits.
absl::Status CompareGate(const ComparedForward& forward);

}  // namespace wan
