// A checkpoint written again in diffusers' layout, for programs that read only that.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace wan {

// `from` is the folder of a checkpoint in either layout; `to` is made, and must be absent or empty.
// Tensors keep their dtypes and bits, under diffusers' names; every component is one file. The
// folder loads with WanPipeline.from_pretrained, and with wanserve.
//
// Errors: those of Checkpoint::Open, ALREADY_EXISTS for a folder with something in it,
// FAILED_PRECONDITION for a synthetic model, which has no weights, and those of writing files.
absl::Status WriteDiffusersLayout(const std::string& from, const std::string& to);

}  // namespace wan
