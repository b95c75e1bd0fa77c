// Writes a copy of a checkpoint in diffusers' layout, for programs that read only that layout.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace wan {

// `from` is the folder of a checkpoint in either layout. The function creates the folder `to`,
// which must be absent or empty. Tensors keep their dtypes and bits and get the names of diffusers;
// every component becomes one file. Both WanPipeline.from_pretrained and wanserve can load the
// folder.
//
// Returns the errors of Checkpoint::Open and of writing; ALREADY_EXISTS if `to` is not empty;
// FAILED_PRECONDITION for a synthetic model, which has no weights.
absl::Status WriteDiffusersLayout(const std::string& from, const std::string& to);

}  // namespace wan
