// Checks whether the plug-in's kernels were compiled for a GPU.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace wan {

// Returns OK if machine code for `architectures` (WAN_CUDA_ARCHS, for example "80;89;90a") runs on
// a GPU of this compute capability, given as ten times the major plus the minor number. Code for
// 8.0 runs on every 8.x GPU but no other major version; code with an "a" runs only on exactly that
// one. Otherwise returns FAILED_PRECONDITION, naming the card and what to build. Without this check
// the first kernel would fail with "no kernel image is available".
absl::Status CheckCompiledFor(int compute_capability, const std::string& card,
                              const std::string& architectures);

}  // namespace wan
