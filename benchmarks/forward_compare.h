// Compares two ways to compute the same forward. The two ways alternate, so that clocks and heat
// are equal for both.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "benchmarks/benched_transformer.h"

namespace wan {

// `what` is one of:
//   streaming  Compares resident weights with streamed ones, which must have a home on the host.
//   guidance   Compares two forwards of one text each with one batch of both texts.
//   gate       Compares forwards without a gate with forwards that pass one, as in a job.
//   quality    exact forwards against forwards of 8 bits; then a row for each block, with the
//              error that 8 bits in this block alone cause
// Adds a row for the second way, with the times of both ways, the difference in per cent, and how
// far the results differ. INTERNAL if streaming or the gate changes any bit of the result.
struct ForwardComparison {
  std::string what;
  std::string name;       // the name of the rows
  ForwardPolicy rounded;  // the policy of the forwards with 8 bits
};
absl::StatusOr<bool> CompareForwards(const ForwardComparison& compared,
                                     const BenchedTransformer& benched, int rounds,
                                     Session& session);

}  // namespace wan
