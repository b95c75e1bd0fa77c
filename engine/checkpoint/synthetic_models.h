// Models that consist only of dimensions and dtypes, for measurements and tests. When they are
// loaded, their tensors are filled with random numbers from a seed.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/api/model_parts.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/weight_source.h"

namespace wan {

struct SyntheticModel {
  std::string name;
  FamilyId family = FamilyId::kTi2v5b;
  TransformerConfig transformer;  // all experts have these dimensions
  TextEncoderConfig text_encoder;
  VaeConfig vae;
  DType transformer_dtype = DType::kFloat32;
  DType text_encoder_dtype = DType::kFloat32;
  DType vae_dtype = DType::kFloat32;
};

// Returns the synthetic model with this name. The name of a family stands for upstream's published
// dimensions, in bf16 except for the VAE. "ti2v-tiny" stands for the dimensions of the tests'
// reference data, in fp32. NOT_FOUND, listing the names, for any other name. Thread-safe.
absl::StatusOr<SyntheticModel> FindSyntheticModel(std::string_view name);

}  // namespace wan
