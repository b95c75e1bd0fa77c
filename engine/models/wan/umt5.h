// The encoder of UMT5: upstream's T5EncoderModel (wan/modules/t5.py).
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
  // The dtype of the weights, the products and the hidden states. Norm statistics and the softmax
  // are always fp32.
  at::ScalarType dtype = at::kFloat;
  // Receives ownership of the weights, so that their memory can be moved between host and device;
  // null: the weights stay on the device.
  std::shared_ptr<ComponentWeights> weights;
  // A stop request ends the loading with CANCELLED.
  std::stop_token stop = {};
  // Keeps the matrices and the token table in 8 bits, rounded from `dtype`. Each matrix is restored
  // to `dtype` for its product.
  bool eight_bit_weights = false;
};

// Copies the weights to options.device; `weights` is not needed afterwards. Returns the loader's
// status if a tensor is missing or has another shape.
absl::StatusOr<std::unique_ptr<TextEncoder>> LoadUmt5(const WeightSource& weights,
                                                      const TextEncoderConfig& config,
                                                      const Umt5Options& options);

}  // namespace wan
