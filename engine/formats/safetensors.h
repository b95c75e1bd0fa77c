// Reads the safetensors format: header length, JSON header, tensor bytes. All functions are
// thread-safe. https://huggingface.co/docs/safetensors
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// Maps a file and checks it: the header fits into the file and is JSON, dtypes are known, names are
// unique, every tensor has as many bytes as shape and dtype need, and tensors fill the rest of the
// file without overlaps or holes. Otherwise returns DATA_LOSS, naming file and tensor.
absl::StatusOr<TensorFile> ReadSafetensors(const std::string& path);

// Reads the shards named by an index file ("*.safetensors.index.json") from the index's folder.
// Index and shards must agree about each tensor's shard. A problem in one shard does not prevent
// reading the others.
TensorFiles ReadShardedSafetensors(const std::string& index_path);

}  // namespace wan
