// Fills in a request's unset fields.
#pragma once

#include "engine/api/engine_options.h"
#include "engine/api/generation.h"

namespace wan {

// Sets the fields for which the operator chooses one default for all models. If the operator has
// not chosen the autoencoder's precision, it is kFp32.
void SetOperatorDefaults(const EngineOptions& options, GenerationRequest& defaults);

// Sets every unset field of `request` from a model's `defaults` (ModelDescription::defaults). An
// empty negative prompt counts as unset. Model, prompt, image and seed have no defaults, so they
// stay as they are.
void FillUnset(const GenerationRequest& defaults, GenerationRequest& request);

}  // namespace wan
