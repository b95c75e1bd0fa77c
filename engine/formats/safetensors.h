// The safetensors format: a length, a JSON header, the tensors' bytes.
// https://huggingface.co/docs/safetensors
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// Maps and checks one file: the header fits and is JSON, dtypes are known, no name occurs twice,
// and the tensors fill the rest of the file exactly, without overlap or hole, each with as many
// bytes as its shape and dtype ask for. DATA_LOSS, naming file and tensor, if not.
absl::StatusOr<TensorFile> ReadSafetensors(const std::string& path);

// The shards that an index file ("*.safetensors.index.json") names, from the folder it lies in. The
// index and the shards must agree about which tensor lies where. Reads all of them, whatever is
// wrong with one.
TensorFiles ReadShardedSafetensors(const std::string& index_path);

}  // namespace wan
