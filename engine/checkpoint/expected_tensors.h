// Lists the tensors that a component of given dimensions has. Only this file knows their names, in
// both layouts, and their shapes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/checkpoint/model_config.h"

namespace wan {

struct TensorSpec {
  std::string name;            // canonical name, which is upstream's
  std::string diffusers_name;  // name of the same tensor in diffusers' layout
  std::vector<int64_t> shape;  // shape in both layouts
};

// Tensors come in the order of the computation. The dimensions must be in the ranges that
// config_limits.h gives.
std::vector<TensorSpec> ExpectedTensors(const TransformerConfig& config);
std::vector<TensorSpec> ExpectedTensors(const TextEncoderConfig& config);
std::vector<TensorSpec> ExpectedTensors(const VaeConfig& config);

}  // namespace wan
