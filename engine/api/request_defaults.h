// Fills in a request's unset fields.
#pragma once

#include "engine/api/engine_options.h"
#include "engine/api/generation.h"

namespace wan {

// Sets the fields whose default the operator chooses for all models. The autoencoder's precision is
// kFp32 if the operator has not set it.
void SetOperatorDefaults(const EngineOptions& options, GenerationRequest& defaults);

// Sets every unset field of `request` from `defaults`, a model's (ModelDescription::defaults). An
// empty negative prompt counts as unset. Model, prompt, image and seed have no defaults.
void FillUnset(const GenerationRequest& defaults, GenerationRequest& request);

}  // namespace wan
