// A LoRA file, read against the transformer that it is to change: what is added to which tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// An addition to one tensor, seen as a matrix [rows, columns]: its first extent, and the product of
// the others.
struct LoraTerm {
  std::string target;  // canonical: "blocks.0.self_attn.q.weight"
  int64_t rows = 0;
  int64_t columns = 1;
  // target += factor * up down, up [rows, rank] and down [rank, columns]; or, if the rank is 0,
  // target += factor * difference.
  int64_t rank = 0;
  StoredTensor up;
  StoredTensor down;
  StoredTensor difference;
  double factor = 1;
};

struct LoraFile {
  std::string path;                     // of the safetensors file
  std::shared_ptr<const void> mapping;  // keeps the terms' bytes valid
  std::vector<LoraTerm> terms;          // sorted by target, at least one
  int64_t rank = 0;                     // the largest
  uint64_t bytes = 0;                   // of all terms
};

// `path` is a safetensors file, or a folder as PEFT writes it (adapter_model.safetensors with
// adapter_config.json). Key styles and scaling: docs/lora.md.
//
// Refused, with file and key: what is damaged (DATA_LOSS: also a factor without its other half, two
// spellings of one key), what is of another model (INVALID_ARGUMENT: unknown keys, other
// dimensions), adapters other than LoRA and dtypes but F32, F16, BF16 (UNIMPLEMENTED).
absl::StatusOr<LoraFile> ReadLoraFile(const std::string& path, const TransformerConfig& config);

}  // namespace wan
