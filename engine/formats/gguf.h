// Reads GGUF files: metadata, a table of tensors, and their data, mostly in blocks of a few bits.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// Maps a file of version 2 or 3 and checks it. Dimensions are in the order of safetensors: the last
// dimension is contiguous. If ComfyUI's converter has changed the shape of a tensor, which it notes
// in the metadata, the original shape is returned. The texts of the metadata are in
// TensorFile::metadata.
//
// DATA_LOSS, naming file and tensor, if the file ends too early, if a count, a length or an offset
// does not fit into it, if tensors overlap or if a name occurs twice. UNIMPLEMENTED for another
// version, a big-endian file, and a tensor of a type that is not read (ggml_types.h); the message
// names the type. The reader checks counts and lengths in the file before it allocates memory.
// Thread-safe.
absl::StatusOr<TensorFile> ReadGguf(const std::string& path);

}  // namespace wan
