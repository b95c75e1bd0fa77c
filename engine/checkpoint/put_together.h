// Puts a checkpoint together from files of single components.
#pragma once

#include <string>

#include "engine/api/model_source.h"
#include "engine/checkpoint/checkpoint_parts.h"

namespace wan {

// Reads the components that `source` names, and puts them into `parts` in place of the folder's
// components. At the call `parts` has the components of the folder, or none. Then sets the family
// that the components fit. Problems are appended to the components and to the parts. Thread-safe.
void PutTogether(const ModelSource& source, CheckpointParts& parts);

// Reads the tiny decoder that `source` names, or whose published file is in the model's folder.
// Makes it a part of the model's autoencoder, which it must fit. Does nothing if there is no tiny
// decoder. Problems are appended to the component; then the autoencoder stays without it.
// Thread-safe.
void AddTinyDecoder(const ModelSource& source, CheckpointParts& parts);

// Returns the path of the tokenizer's file. `source` may name that file or its folder. Empty if
// `source` names no tokenizer.
std::string TokenizerPath(const ModelSource& source);

// Reads a file or folder with one component. The result has only this component; missing parts of
// the model are not problems. Thread-safe.
CheckpointParts ReadComponentParts(const std::string& path);

}  // namespace wan
