// Makes the terms of a LoRA from the tensors of its file.
#pragma once

#include "absl/status/statusor.h"
#include "engine/checkpoint/lora_alpha.h"
#include "engine/checkpoint/lora_file.h"
#include "engine/checkpoint/model_config.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// Sorts the file's tensors by module and checks them. `alpha` has the file's settings. Sets all
// members of the result but `files`. Reads the whole file, because all values must be finite.
// Returns the errors of ReadLoraFile.
absl::StatusOr<LoraFile> BuildLora(const TensorFile& file, const TransformerConfig& config,
                                   const LoraAlpha& alpha);

}  // namespace wan
