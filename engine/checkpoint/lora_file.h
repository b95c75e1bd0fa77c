// Reads a LoRA file for a transformer: which tensors it changes, and by how much.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/model_file.h"
#include "engine/checkpoint/model_config.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// An addition to one tensor. The tensor is seen as a matrix [rows, columns]: rows is its first
// dimension, columns the product of the others.
struct LoraTerm {
  std::string target;  // the canonical name: "blocks.0.self_attn.q.weight"
  int64_t rows = 0;
  int64_t columns = 1;
  // Rank > 0: target += factor * (up down), with up [rows, rank] and down [rank, columns]. Rank 0:
  // target += factor * difference.
  int64_t rank = 0;
  StoredTensor up;
  StoredTensor down;
  StoredTensor difference;
  double factor = 1;
};

struct LoraFile {
  std::string path;                     // path of the safetensors file
  std::vector<ModelFile> files;         // the file and, if read, adapter_config.json
  std::shared_ptr<const void> mapping;  // keeps the terms' bytes valid
  const MappedFile* file = nullptr;     // the file that holds the bytes; null if they are a copy
  std::vector<LoraTerm> terms;          // sorted by target, at least one
  // Tensors that were skipped because they belong to the image branch of Wan2.1's models, sorted.
  std::vector<std::string> left_out;
  int64_t rank = 0;    // largest rank of all terms
  uint64_t bytes = 0;  // bytes of all terms
};

// Reads a safetensors file, or a folder that PEFT wrote (adapter_model.safetensors with
// adapter_config.json). docs/use/lora.md has the styles of keys and the scaling. Thread-safe.
//
// Reads all values to check that they are finite, so this takes as long as reading the file from
// disk.
//
// Errors name file and key. DATA_LOSS for a damaged file, one half of a pair missing, two spellings
// of one key, NaN or infinite values, or settings that contradict each other or the tensors
// (lora_alpha.h); INVALID_ARGUMENT for a LoRA of another model (unknown keys, other dimensions);
// UNIMPLEMENTED for adapters other than LoRA and dtypes other than F32, F16 and BF16.
absl::StatusOr<LoraFile> ReadLoraFile(const std::string& path, const TransformerConfig& config);

}  // namespace wan
