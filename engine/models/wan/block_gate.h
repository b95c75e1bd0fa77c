// Lets a transformer block stop part-way: passes a gate (work_gate.h) between the block's parts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "engine/costs/wan/transformer_cost.h"
#include "engine/device/work_gate.h"

namespace wan {

// The self-attention of a long video alone can keep a GPU busy for as long as a stop may take.
// Blocks of long videos therefore pass the gate several times. Blocks of short videos pass the gate
// once, because launching their kernels takes most of the time.
class BlockGate {
 public:
  // `flops` counts a whole block, whose work `ranks` ranks share.
  BlockGate(const WorkGate& gate, const BlockFlops& flops, int64_t ranks)
      : gate_(gate),
        flops_{flops.self_attention / static_cast<double>(ranks),
               flops.rest / static_cast<double>(ranks)} {}

  // Call AfterAttentionPart after each part of a very long video's self-attention. As one kernel,
  // the attention would run longer than a stop may take. `flops` counts this rank's share of the
  // part.
  absl::Status AfterAttentionPart(double flops) {
    passed_ += flops;
    return gate_.Pass(flops);
  }
  absl::Status AfterSelfAttention() {
    if (!IsSplit() && passed_ == 0) return absl::OkStatus();
    // max(): a rank with more heads than average may already have passed more than the average
    // share.
    return gate_.Pass(std::max(flops_.self_attention - std::exchange(passed_, 0), 0.0));
  }
  absl::Status AfterFeedForward() const {
    return gate_.Pass(IsSplit() ? flops_.rest : flops_.self_attention + flops_.rest);
  }

 private:
  bool IsSplit() const {
    return flops_.self_attention + flops_.rest > WorkGate::kFlopsBetweenMarks;
  }

  const WorkGate& gate_;
  const BlockFlops flops_;
  double passed_ = 0;  // operations of this block's self-attention that were passed
                       // to the gate so far
};

}  // namespace wan
