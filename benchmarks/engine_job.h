// Runs jobs of the whole engine, for programs that measure a job from plan to end.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/residency.h"

namespace wan {

// Parses residency policies, each a text such as "vae=host". INVALID_ARGUMENT if a text has another
// form.
absl::StatusOr<std::vector<ComponentResidency>> ParseResidency(
    const std::vector<std::string>& entries);

// Returns a request to the engine's only model, "m", for a video of exactly `shape`
// ("1280x704x121"). All other settings are the model's defaults. The request has a black image if
// `with_image` is set or the model needs an image. INVALID_ARGUMENT if `shape` has another form.
absl::StatusOr<GenerationRequest> BenchmarkRequest(const Engine& engine, const std::string& shape,
                                                   bool with_image = false);

}  // namespace wan
