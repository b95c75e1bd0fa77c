// Puts a checkpoint together from files of single components.
#pragma once

#include <string>

#include "engine/api/model_source.h"
#include "engine/checkpoint/checkpoint_parts.h"

namespace wan {

// Reads the components that `source` names, and replaces those of `parts`. `parts` has the
// components of the folder, or none. Afterwards the model's family is the one that the components
// fit. Problems are appended to the components and to the parts. Thread-safe.
void PutTogether(const ModelSource& source, CheckpointParts& parts);

// Reads the tiny decoder that `source` names, or that lies in the model's folder under its
// publisher's name, and makes it a part of the model's autoencoder, which it must fit. Does nothing
// if there is none. Problems are appended to the component; then the autoencoder stays without it.
// Thread-safe.
void AddTinyDecoder(const ModelSource& source, CheckpointParts& parts);

// Returns the path of the tokenizer that `source` names, which may be its file or the folder with
// the file; empty if it names none.
std::string TokenizerPath(const ModelSource& source);

// Reads a file or folder of one component, which becomes the only component of the result; the
// missing rest of a model is not a problem. Thread-safe.
CheckpointParts ReadComponentParts(const std::string& path);

}  // namespace wan
