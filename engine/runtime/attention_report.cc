#include "engine/runtime/attention_report.h"

#include <string>

#include "engine/ops/attention.h"
#include "engine/planning/plan_memory.h"

namespace wan {

Sample AttentionKernels(const LoadedModel& model, const LoadOptions& options) {
  const PlannedModel& planned = model.pipeline.planned;
  const GenerationRequest defaults = planned.Defaults();
  const VideoShape shape{defaults.width.value_or(0), defaults.height.value_or(0),
                         defaults.num_frames.value_or(0)};
  const int64_t tokens = CountTokens(planned, LatentShape(planned, shape));
  const auto kernel = [&](int64_t keys) {
    return std::string(NameOf(
        ChooseAttentionKernel({.device = options.device.type(),
                               .dtype = options.dtype,
                               .queries = tokens,
                               .keys = keys,
                               .head_dim = planned.transformer.dim / planned.transformer.num_heads,
                               .compute_capability = ComputeCapability(options.device)})));
  };
  return {"attention_kernels",
          1,
          {{"self", kernel(tokens)}, {"cross", kernel(planned.transformer.text_len)}}};
}

}  // namespace wan
