// Writes a copy of a checkpoint in diffusers' layout, for programs that read no other.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace wan {

// `from` is a checkpoint's folder in either layout. `to` is created and must be absent or empty.
// Tensors keep dtypes and bits and get diffusers' names; every component becomes one file.
// WanPipeline.from_pretrained and wanserve can load the folder.
//
// Returns the errors of Checkpoint::Open; ALREADY_EXISTS if `to` is not empty; FAILED_PRECONDITION
// for a synthetic model, which has no weights; and errors of writing.
absl::Status WriteDiffusersLayout(const std::string& from, const std::string& to);

}  // namespace wan
