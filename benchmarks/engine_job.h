// Jobs of the whole engine, for the programs that measure one from its plan to its end.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/residency.h"

namespace wan {

// The policies that entries such as "vae=host" name. INVALID_ARGUMENT for any other text.
absl::StatusOr<std::vector<ComponentResidency>> ParseResidency(
    const std::vector<std::string>& entries);

// A request to the engine's only model, "m", for a video of exactly `shape` ("1280x704x121"), else
// with the model's defaults. It has an image, which is black, if `with_image` or if the model needs
// one. INVALID_ARGUMENT for a text that is no shape.
absl::StatusOr<GenerationRequest> BenchmarkRequest(const Engine& engine, const std::string& shape,
                                                   bool with_image = false);

}  // namespace wan
