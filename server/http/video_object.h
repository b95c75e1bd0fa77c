// Converts jobs and models to objects of the OpenAI API.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "absl/time/time.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns the job's video file: the first file in a format that plays everywhere, otherwise the
// first file; null if the job has no file.
const wan::v1::Artifact* VideoFileOf(const wan::v1::Job& job);

// Returns the progress in percent; only the decoding is left when all steps are done.
int ProgressOf(const wan::v1::Job& job);

// Returns "size", "num_frames" and "fps" of a resolved request.
nlohmann::json ShapeOf(const wan::v1::GenerationRequest& request);
// Returns the other fields of a resolved request that decide how the video looks, under the names
// that a request gives them; without prompt, steps and seed.
nlohmann::json SamplingOf(const wan::v1::GenerationRequest& request);

nlohmann::json VideoOf(const wan::v1::Job& job);
nlohmann::json ModelObject(std::string_view name, absl::Time created);

}  // namespace wan::server
