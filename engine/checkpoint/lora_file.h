// Reads a LoRA file for a transformer: finds which tensors it changes, and by how much.
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

// A term that is added to one tensor. The tensor is treated as a matrix [rows, columns]: rows is
// its first dimension, columns the product of the others.
struct LoraTerm {
  std::string target;  // the tensor's canonical name, for example "blocks.0.self_attn.q.weight"
  int64_t rows = 0;
  int64_t columns = 1;
  // If the rank is above 0: target += factor * (up down), with up [rows, rank] and down [rank,
  // columns]. If the rank is 0: target += factor * difference.
  int64_t rank = 0;
  StoredTensor up;
  StoredTensor down;
  StoredTensor difference;
  double factor = 1;
};

struct LoraFile {
  std::string path;                     // path of the safetensors file that was read
  std::vector<ModelFile> files;         // that file and, if it was read, adapter_config.json
  std::shared_ptr<const void> mapping;  // owns the memory of the terms' bytes
  const MappedFile* file = nullptr;     // the file that holds the bytes; null if they are a copy
  std::vector<LoraTerm> terms;          // sorted by target; there is at least one term
  // The tensors that were skipped because they belong to the image branch of Wan2.1's models,
  // sorted by name.
  std::vector<std::string> left_out;
  int64_t rank = 0;    // largest rank of any term
  uint64_t bytes = 0;  // bytes of all terms together
};

// Reads a safetensors file, or a folder that PEFT wrote (adapter_model.safetensors with
// adapter_config.json). docs/use/lora.md describes the styles of keys and the scaling. Thread-safe.
//
// The call takes as long as reading the file from disk, because it checks that all values are
// finite.
//
// Every error names file and key. DATA_LOSS if the file is damaged, half of a pair is missing, one
// key has two spellings, a value is NaN or infinite, or settings contradict each other or the
// tensors (lora_alpha.h); INVALID_ARGUMENT if the LoRA is for another model (unknown keys, other
// dimensions); UNIMPLEMENTED for adapters other than LoRA and dtypes other than F32, F16 and BF16.
absl::StatusOr<LoraFile> ReadLoraFile(const std::string& path, const TransformerConfig& config);

}  // namespace wan
