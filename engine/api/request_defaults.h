// Fills in what a request leaves open.
#pragma once

#include "engine/api/engine_options.h"
#include "engine/api/generation.h"

namespace wan {

// Sets the fields whose default the operator chooses, whatever the model: an unset precision of the
// autoencoder is kFp32.
void SetOperatorDefaults(const EngineOptions& options, GenerationRequest& defaults);

// Gives every field that `request` leaves open the value of `defaults`, which are a model's
// (ModelDescription::defaults). An empty negative prompt counts as left open. Model, prompt, image
// and seed have no defaults.
void FillUnset(const GenerationRequest& defaults, GenerationRequest& request);

}  // namespace wan
