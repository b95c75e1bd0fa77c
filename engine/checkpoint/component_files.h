// Recognises the component of a model that some files hold, from the names of their tensors.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/weight_tables.h"
#include "engine/formats/tensor_file.h"

namespace wan {

enum class ComponentKind { kTransformer, kTextEncoder, kVae, kTinyDecoder };

// Returns "transformer", "text encoder", "VAE" or "tiny decoder".
std::string_view NameOf(ComponentKind kind);

struct Recognised {
  ComponentKind kind = ComponentKind::kTransformer;
  Naming naming = Naming::kUpstream;
};

// Returns whether `path` ends like the name of a file with tensors, or of an index of shards.
// Thread-safe.
bool IsTensorFile(const std::string& path);

// Reads the files of one component. `path` is a safetensors, GGUF or torch file, the index of
// shards ("*.safetensors.index.json"), or a folder with the safetensors of one component. The
// tensors get the names that published checkpoints have. The function removes the prefixes of
// ComfyUI's files and of rCM's archives, and the mark of TurboDiffusion's int8 weights. A token
// embedding that a file has under two names counts once. Thread-safe.
TensorFiles ReadComponentFiles(const std::string& path);

// Returns which component of a Wan model the files of ReadComponentFiles hold, and how its tensors
// are named. Translates the names that other programs give to the tensors of the text encoder.
//
// Returns UNIMPLEMENTED if the files hold no component of a Wan model. The message begins with
// `path`, and says in one sentence what the files are and what helps.
absl::StatusOr<Recognised> RecogniseComponent(const std::string& path, TensorFiles& files);

}  // namespace wan
