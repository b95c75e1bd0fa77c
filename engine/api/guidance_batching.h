// Whether the two forwards of a guided step, with the prompt and without it, run as one batch.
#pragma once

namespace wan {

// The choice holds for every job of an engine. A batch needs more memory than one forward: where it
// does not fit the device beside the weights, or the host, the plan takes two forwards instead, so
// no job is refused for it. GenerationPlan::batched_guidance has the choice for a job. The videos
// differ by rounding alone. Steps without guidance have one forward, and nothing to batch.
enum class GuidanceBatching {
  // One batch where that is faster: for small videos, and in a group with an even number of
  // devices, each half of which computes one of the forwards.
  kAuto,
  // One batch for videos of any size.
  kBatched,
  // Two forwards, one after the other. All devices of a group compute each of them together.
  kSplit,
};

}  // namespace wan
