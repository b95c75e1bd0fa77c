// Checks whether the plug-in's kernels were compiled for a GPU.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace wan {

// Returns OK if machine code for `architectures` (the build setting WAN_CUDA_ARCHS, for example
// "80;89;90a") runs on a GPU of this compute capability. The capability is ten times the major plus
// the minor number. Code for 8.0 runs on every 8.x GPU, but on no GPU with another major number.
// Code with an "a" runs only on exactly that capability. Otherwise returns FAILED_PRECONDITION; the
// message names the card and the architecture for which to build. Without this check the first
// kernel would fail with "no kernel image is available".
absl::Status CheckCompiledFor(int compute_capability, const std::string& card,
                              const std::string& architectures);

}  // namespace wan
