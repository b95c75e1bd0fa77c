// What can be wrong about a request that the engine does not see.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "engine/api/errors.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Names the fields that are longer, or have more elements, than any valid request's: texts, image,
// outputs, guidance_scale, loras and labels. At most one violation a field, and no element is
// looked at, so that a huge request costs no more than its own bytes. Call it before a request is
// hashed, copied or validated.
std::vector<FieldViolation> ValidateSizes(const wan::v1::GenerationRequest& request);

// Every violation of model (only that it is there), priority, deadline, request_id, labels,
// outputs, solver and preview_interval. Engine::Plan checks the other fields. `request` must have
// passed ValidateSizes.
std::vector<FieldViolation> ValidateRequest(const wan::v1::GenerationRequest& request,
                                            absl::Time now);

// Of request_id alone: it is looked up before anything else is checked.
std::vector<FieldViolation> ValidateRequestId(const wan::v1::GenerationRequest& request);

}  // namespace wan::server
