// Whether a guided step runs its two forwards (with and without the prompt) as one batch.
#pragma once

namespace wan {

// The choice applies to every job of an engine. A batch needs more memory than one forward. If a
// batch does not fit the device or the host, the plan runs two forwards instead of refusing the
// job. GenerationPlan::batched_guidance has the choice for a job. The choice changes videos only by
// rounding. A step without guidance has a single forward.
enum class GuidanceBatching {
  // One batch if that is faster: for small videos, and in a group with an even number of devices,
  // where each half of the devices computes one forward.
  kAuto,
  // One batch for videos of any size.
  kBatched,
  // Two forwards, one after the other; in a group all devices share each forward.
  kSplit,
};

}  // namespace wan
