// Writes a copy of a checkpoint in the layout of diffusers, for programs that read only that
// layout.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace wan {

// `from` is the folder of a checkpoint in either layout. `to` must be absent or empty; it is
// created. Tensors keep their dtypes and bits and get the names of diffusers; every component
// becomes one file. WanPipeline.from_pretrained and wanserve can load the folder.
//
// It returns the errors of Checkpoint::Open; ALREADY_EXISTS if `to` is not empty;
// FAILED_PRECONDITION for a synthetic model, which has no weights; and the errors of writing files.
absl::Status WriteDiffusersLayout(const std::string& from, const std::string& to);

}  // namespace wan
