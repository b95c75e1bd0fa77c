// Reads files in the safetensors format: the length of the header, the header in JSON, the bytes of
// the tensors. All functions are thread-safe. https://huggingface.co/docs/safetensors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// Maps a file and checks it. The header must fit into the file and be JSON, dtypes must be known
// and names unique. Every tensor must have as many bytes as its shape and dtype need, and the
// tensors must fill the rest of the file without overlaps or holes. Otherwise returns DATA_LOSS;
// the message names file and tensor.
absl::StatusOr<TensorFile> ReadSafetensors(const std::string& path);

// Checks a file's content in memory as ReadSafetensors does. `bytes` must outlive the result.
// Messages call the file `name`. The function refuses a header of more than `longest_header` bytes
// without parsing it, because parsing takes several times the header's memory.
absl::StatusOr<TensorFile> ReadSafetensorsBytes(std::span<const std::byte> bytes,
                                                const std::string& name, uint64_t longest_header);

// Reads the shards that an index file ("*.safetensors.index.json") names, from the folder of the
// index. Index and shards must agree about which shard has which tensor. If one shard has a
// problem, the other shards are read nevertheless.
TensorFiles ReadShardedSafetensors(const std::string& index_path);

}  // namespace wan
