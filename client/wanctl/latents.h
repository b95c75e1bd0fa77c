// Compares the latents of two videos.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "client/reports/run.h"

namespace wan::client {

// Compares `a` with `b`; both are artifacts of the kind LATENTS: safetensors files with one fp32
// tensor. The relative difference is |a - b| / |a|. Fails with INVALID_ARGUMENT if a file has
// another form or the shapes differ.
absl::StatusOr<reports::ResultDifference> CompareLatents(std::string_view a, std::string_view b);

}  // namespace wan::client
