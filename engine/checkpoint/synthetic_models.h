// Models without weights: dimensions and dtypes, for measurements and tests. Their tensors are
// filled with seeded random numbers where they are needed.
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
  TransformerConfig transformer;  // of each expert
  TextEncoderConfig text_encoder;
  VaeConfig vae;
  DType transformer_dtype = DType::kFloat32;
  DType text_encoder_dtype = DType::kFloat32;
  DType vae_dtype = DType::kFloat32;
};

// "ti2v-5b", "t2v-a14b", "i2v-a14b": the dimensions that upstream publishes, in bf16 but for the
// VAE. "ti2v-tiny": those of the reference data, in fp32. NOT_FOUND, listing the names, for any
// other.
absl::StatusOr<SyntheticModel> FindSyntheticModel(std::string_view name);

}  // namespace wan
