// The encoder half of UMT5, as upstream's wan/modules/t5.py has it (T5EncoderModel).
#pragma once

#include <memory>
#include <stop_token>

#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/models/text_encoder.h"
#include "engine/weights/component_weights.h"

namespace wan {

struct Umt5Options {
  at::Device device = at::kCPU;
  // Of weights, products and hidden states. Statistics of norms and the softmax are fp32 always.
  at::ScalarType dtype = at::kFloat;
  // Where the weights are entered, to be moved; null: they stay on the device.
  std::shared_ptr<ComponentWeights> weights;
  // Ends the loading with CANCELLED.
  std::stop_token stop = {};
};

// Copies the weights to options.device; `weights` is not needed afterwards. A tensor that is
// missing or of another shape gives the weight loader's status.
absl::StatusOr<std::unique_ptr<TextEncoder>> LoadUmt5(const WeightSource& weights,
                                                      const TextEncoderConfig& config,
                                                      const Umt5Options& options);

}  // namespace wan
