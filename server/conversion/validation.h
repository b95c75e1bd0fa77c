// Checks those fields of a generation request that Engine::Plan does not check.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "engine/api/errors.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns a violation for each field that is longer, or has more elements, than any valid
// request's: texts, image, URL, outputs, guidance_scale, loras and labels. There is at most one for
// each field, and no element is inspected, so that a huge request costs no more than its own bytes.
// If there is none, returns one for the first text that is not UTF-8, which the store could not
// read back. Call this before a request is hashed, copied or validated.
std::vector<FieldViolation> ValidateSizes(const wan::v1::GenerationRequest& request);

// Returns every violation of background, priority, deadline, request_id, labels, outputs and
// solver, and one if model is empty, or the image is given but empty. Engine::Plan checks the other
// fields. `request` must have passed ValidateSizes. `now` is the time that a
// deadline must be after.
std::vector<FieldViolation> ValidateRequest(const wan::v1::GenerationRequest& request,
                                            absl::Time now);

// Checks request_id alone, because it is looked up before anything else is checked.
std::vector<FieldViolation> ValidateRequestId(const wan::v1::GenerationRequest& request);

}  // namespace wan::server
