#include "benchmarks/block_work.h"

#include "engine/costs/wan/transformer_cost.h"

namespace wan {
namespace {

struct Trace {
  BlockStep step;
  const char* name;
  const char* traced_as;
};

constexpr char kLinear[] = "aten::addmm";
constexpr char kNorm[] = "wan::rms_norm_rope";
constexpr char kAttention[] = "wan::attention";
constexpr char kResidual[] = "wan::gate_residual_norm";

constexpr Trace kTraces[] = {
    {BlockStep::kQueriesKeysValues, "queries, keys, values", kLinear},
    {BlockStep::kQueryKeyNorm, "norm and rotary embedding of queries and keys", kNorm},
    {BlockStep::kSelfAttention, "self-attention", kAttention},
    {BlockStep::kAttentionOutput, "output of the self-attention", kLinear},
    {BlockStep::kAttentionResidual, "gate, residual, norm before the text", kResidual},
    {BlockStep::kTextQueries, "queries of the text", kLinear},
    {BlockStep::kTextQueryNorm, "norm of the text's queries", kNorm},
    {BlockStep::kTextAttention, "attention to the text", kAttention},
    {BlockStep::kTextOutput, "output of the text's attention", kLinear},
    {BlockStep::kTextResidual, "residual, norm before the feed-forward", kResidual},
    {BlockStep::kFeedForwardIn, "feed-forward in, with GELU", "aten::_addmm_activation"},
    {BlockStep::kFeedForwardOut, "feed-forward out", kLinear},
    {BlockStep::kFeedForwardResidual, "gate, residual, norm before the next block", kResidual},
};

}  // namespace

std::vector<TracedOperator> TracedOperators(const TransformerConfig& config, int64_t tokens,
                                            const std::string& precision) {
  const bool is_fp32 = precision == "fp32";
  const std::vector<BlockOperator> operators =
      BlockOperators(config, tokens, /*batch=*/1, is_fp32 ? 4 : 2);
  std::vector<TracedOperator> traced;
  for (const Trace& trace : kTraces) {
    const BlockOperator& op = operators[static_cast<size_t>(trace.step)];
    const bool is_attention = op.operator_class.ends_with("attention");
    TracedOperator& added = traced.emplace_back();
    added.name = trace.name;
    // In fp32 the product and the GELU are separate calls.
    added.traced_as =
        trace.step == BlockStep::kFeedForwardIn && is_fp32 ? kLinear : trace.traced_as;
    added.work = {.product_flop = is_attention ? 0 : op.flops,
                  .attention_flop = is_attention ? op.flops : 0,
                  .bytes = op.bytes,
                  .precision = precision};
    added.is_product = !is_attention && op.flops > 0;
  }
  return traced;
}

}  // namespace wan
