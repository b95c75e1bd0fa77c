// Checks the models that an operator (by settings) or an administrator (by LoadModel) asks to load.
#pragma once

#include <cstddef>

#include "absl/status/status.h"
#include "engine/api/engine.h"

namespace wan::server {

// Maximum number of LoRAs of one model, where the file of each expert counts; and maximum number of
// bytes of a path.
inline constexpr size_t kMaxLorasOfModel = 64;
inline constexpr size_t kMaxPathBytes = 4096;

// Checks only the form of the spec and reads no file. Fails with INVALID_ARGUMENT and a violation
// for each field that is wrong: a name must be 1 to 63 letters, digits, '.', '_' and '-', a path
// must have 1 to kMaxPathBytes bytes and no NUL, and the model's must be one that ParseModelSource
// reads.
absl::Status CheckSpec(const ModelSpec& spec);

// Makes relative paths absolute, starting from the process's working directory, so that error
// messages show where a file was sought; the paths of a model's parts are included.
// "synthetic:FAMILY" and empty paths stay as they are.
void MakeAbsolute(ModelSpec& spec);

}  // namespace wan::server
