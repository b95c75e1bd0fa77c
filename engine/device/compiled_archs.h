// Checks whether the plug-in's kernels were compiled for a GPU.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace wan {

// Returns OK if machine code for `architectures` ("80;89;90a", as WAN_CUDA_ARCHS) runs on a card of
// this compute capability, ten times the major number plus the minor number. Code for 8.0 runs on
// every later 8.x, and on no other major number; code with an "a" runs on exactly its own.
// Otherwise returns FAILED_PRECONDITION, which names the card and what to build. Without this a
// job's first kernel would end with "no kernel image is available".
absl::Status CheckCompiledFor(int compute_capability, const std::string& card,
                              const std::string& architectures);

}  // namespace wan
