// Lists the tensors that a component with given dimensions has. Only this file knows the names of
// tensors in both layouts, and their shapes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/model_config.h"

namespace wan {

struct TensorSpec {
  std::string name;            // the canonical name, which is upstream's
  std::string diffusers_name;  // the tensor's name in diffusers' layout
  std::vector<int64_t> shape;  // the tensor's shape, which is the same in both layouts
};

// Returns the tensors in the order in which the computation uses them. The dimensions must be in
// the ranges that config_limits.h gives.
std::vector<TensorSpec> ExpectedTensors(const TransformerConfig& config);
std::vector<TensorSpec> ExpectedTensors(const TextEncoderConfig& config);
// The result lacks the tensors of the autoencoder's tiny decoder.
std::vector<TensorSpec> ExpectedTensors(const VaeConfig& config);
// diffusers_name is the name in published files, for example "decoder.1.weight". The canonical
// names begin with "tiny_decoder." instead, because autoencoders also have tensors "decoder.".
std::vector<TensorSpec> ExpectedTensors(const TinyDecoderConfig& config);

}  // namespace wan
