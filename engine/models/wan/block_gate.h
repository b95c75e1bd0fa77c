// Passes a gate (work_gate.h) within a block of the transformer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "engine/costs/wan/transformer_cost.h"
#include "engine/device/work_gate.h"

namespace wan {

// Passes a gate inside a block. The self-attention of a long video alone keeps a GPU busy for as
// long as a stop may take. Blocks of short videos pass once, because there the launches take the
// time.
class BlockGate {
 public:
  // `flops` are those of a block that is computed by `ranks` ranks.
  BlockGate(const WorkGate& gate, const BlockFlops& flops, int64_t ranks)
      : gate_(gate),
        flops_{flops.self_attention / static_cast<double>(ranks),
               flops.rest / static_cast<double>(ranks)} {}

  // Passes the gate between two parts of the self-attention of a very long video. One kernel of it
  // would take longer than a stop may take. `flops` are those of the part, which this rank
  // computed.
  absl::Status AfterAttentionPart(double flops) {
    passed_ += flops;
    return gate_.Pass(flops);
  }
  absl::Status AfterSelfAttention() {
    if (!IsSplit() && passed_ == 0) return absl::OkStatus();
    // A rank with more heads than the mean has passed all of it.
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
  double passed_ = 0;  // of this block's self-attention
};

}  // namespace wan
