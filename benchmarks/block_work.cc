#include "benchmarks/block_work.h"

namespace wan {
namespace {

constexpr double kFp32 = 4;

}  // namespace

std::vector<BlockOperator> BlockOperators(const TransformerConfig& config, int64_t tokens,
                                          const std::string& precision) {
  const double element = precision == "fp32" ? 4 : 2;
  const auto rows = static_cast<double>(tokens);
  const auto dim = static_cast<double>(config.dim);
  const auto ffn = static_cast<double>(config.ffn_dim);
  const auto text = static_cast<double>(config.text_len);
  const auto product = [&](const char* name, double in, double out, const char* traced) {
    return BlockOperator{name,
                         traced,
                         {.product_flop = 2 * rows * in * out,
                          .bytes = element * (rows * in + in * out + rows * out),
                          .precision = precision},
                         true};
  };
  const auto attention = [&](const char* name, double keys) {
    return BlockOperator{name,
                         "wan::attention",
                         {.attention_flop = 4 * rows * keys * dim,
                          .bytes = element * dim * (2 * rows + 2 * keys),
                          .precision = precision}};
  };
  const auto bytes = [&](const char* name, const char* traced, double amount) {
    return BlockOperator{name, traced, {.bytes = amount, .precision = precision}};
  };
  // Reads what the product gave and the residual stream, writes that and the next input.
  const double residual = rows * dim * (2 * element + 2 * kFp32);
  const char* const kLinear = "aten::addmm";
  const char* const kNorm = "wan::rms_norm_rope";
  const char* const kResidual = "wan::gate_residual_norm";
  return {
      product("queries, keys, values", dim, 3 * dim, kLinear),
      bytes("norm and rotary embedding of queries and keys", kNorm, 4 * element * rows * dim),
      attention("self-attention", rows),
      product("output of the self-attention", dim, dim, kLinear),
      bytes("gate, residual, norm before the text", kResidual, residual),
      product("queries of the text", dim, dim, kLinear),
      bytes("norm of the text's queries", kNorm, 2 * element * rows * dim),
      attention("attention to the text", text),
      product("output of the text's attention", dim, dim, kLinear),
      bytes("residual, norm before the feed-forward", kResidual, residual),
      product("feed-forward in, with GELU", dim, ffn,
              precision == "fp32" ? kLinear : "aten::_addmm_activation"),
      product("feed-forward out", ffn, dim, kLinear),
      bytes("gate, residual, norm before the next block", kResidual, residual),
  };
}

}  // namespace wan
