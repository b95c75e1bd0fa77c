// Reads the safetensors format: the length of the header, a JSON header, the bytes of the tensors.
// All functions are thread-safe. https://huggingface.co/docs/safetensors
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// Maps one file and checks it: the header fits into the file and is JSON, every dtype is known, no
// name occurs twice, every tensor has as many bytes as its shape and dtype need, and the tensors
// fill the rest of the file exactly, without overlap or hole. Otherwise DATA_LOSS, naming file and
// tensor.
absl::StatusOr<TensorFile> ReadSafetensors(const std::string& path);

// Reads the shards that an index file ("*.safetensors.index.json") names, from the folder of the
// index. Index and shards must agree about the shard of each tensor. A problem with one shard does
// not keep the others from being read.
TensorFiles ReadShardedSafetensors(const std::string& index_path);

}  // namespace wan
