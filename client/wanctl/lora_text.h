// Texts about LoRAs: those of a request, and those of a model.
#pragma once

#include <string>

#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"

namespace wan::client {

// Returns, for example, "style, light x 0.5, fast x 1/0.8 (high/low)"; a scale of 1 is left out.
std::string LorasText(const wan::v1::GenerationRequest& request);

// Returns lines about a model's LoRAs: for each file the factor, the schedule and the parts left
// out; then the skipped files.
std::string LoraLines(const wan::v1::Model& model);

}  // namespace wan::client
