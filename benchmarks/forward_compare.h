// Compares two ways to compute the same forward, in turns, so that clocks and heat are the same for
// both.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "benchmarks/benched_transformer.h"

namespace wan {

// `what` is one of:
//   streaming  weights that are there against weights that are streamed, which must have a home on
//              the host
//   guidance   forwards of two texts one after the other against one batch of both
//   gate       forwards without a gate against forwards that pass one, as a job's do so that it can
//              be stopped
// Adds one row, of the second way, with the seconds of the first, how many per cent more the second
// takes, and how far the results are apart. INTERNAL if streaming or a gate changes any bit.
absl::StatusOr<bool> CompareForwards(const std::string& what, const std::string& name,
                                     const BenchedTransformer& benched, int rounds,
                                     Session& session);

}  // namespace wan
