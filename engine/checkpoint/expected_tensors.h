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
// Without those of its tiny decoder.
std::vector<TensorSpec> ExpectedTensors(const VaeConfig& config);
// The names of the files, "decoder.1.weight", are diffusers_name; the canonical ones have the
// prefix "tiny_decoder." instead, because autoencoders have a "decoder." as well.
std::vector<TensorSpec> ExpectedTensors(const TinyDecoderConfig& config);

}  // namespace wan
