// Passes a gate (work_gate.h) inside a transformer block.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "engine/costs/wan/transformer_cost.h"
#include "engine/device/work_gate.h"

namespace wan {

// The self-attention of a long video alone keeps a GPU busy for as long as a stop may take, so such
// blocks pass the gate several times. Blocks of short videos pass it once, because there launches
// take most of the time.
class BlockGate {
 public:
  // `flops` are those of a whole block, which `ranks` ranks share.
  BlockGate(const WorkGate& gate, const BlockFlops& flops, int64_t ranks)
      : gate_(gate),
        flops_{flops.self_attention / static_cast<double>(ranks),
               flops.rest / static_cast<double>(ranks)} {}

  // Passes the gate between two parts of a very long video's self-attention, which in one kernel
  // would take longer than a stop may. `flops` are those of the part on this rank.
  absl::Status AfterAttentionPart(double flops) {
    passed_ += flops;
    return gate_.Pass(flops);
  }
  absl::Status AfterSelfAttention() {
    if (!IsSplit() && passed_ == 0) return absl::OkStatus();
    // A rank with more heads than average may have passed more than this.
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
  double passed_ = 0;  // flops of this block's self-attention that were passed so far
};

}  // namespace wan
