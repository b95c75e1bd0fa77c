// Checks the fields of a generation request that Engine::Plan does not check.
#pragma once

#include <vector>

#include "absl/time/time.h"
#include "engine/api/errors.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns a violation for each field that is longer, or has more elements, than a valid request can
// have: texts, image, latents, URL, outputs, guidance_scale, loras and labels. Does not look at the
// elements themselves, so that a huge request costs little. If there is no violation, returns one
// for the first text that is not UTF-8, because the store could not read the text back. Call
// ValidateSizes before a request is hashed, copied or validated.
std::vector<FieldViolation> ValidateSizes(const wan::v1::GenerationRequest& request);

// Returns every violation of background, priority, deadline, request_id, labels, outputs and
// solver; also a violation for an empty model, for an image that is set but empty, and for latents
// without a source. Engine::Plan checks the other fields. `request` must have passed ValidateSizes.
// The deadline must be after `now`.
std::vector<FieldViolation> ValidateRequest(const wan::v1::GenerationRequest& request,
                                            absl::Time now);

// Checks only request_id, which the server looks up before it makes the other checks.
std::vector<FieldViolation> ValidateRequestId(const wan::v1::GenerationRequest& request);

}  // namespace wan::server
