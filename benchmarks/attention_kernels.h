// The attention kernels that are compared, and their errors against fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "benchmarks/session.h"

namespace wan {

// Size of the transformers' heads, for which cuDNN's kernel and our own are made.
inline constexpr int64_t kTransformerHeadDim = 128;

// [1, tokens, heads, head_dim] each, all of one dtype.
struct AttentionInputs {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
};

struct NamedAttention {
  std::string name;
  std::string error;  // name of the row's figure
  at::Tensor (*run)(const AttentionInputs& inputs);
};

// Returns the kernels that can compute `inputs`, first the one that the engine chooses: then, on a
// GPU, cuDNN's, and our own for Hopper GPUs where the engine chooses another one.
std::vector<NamedAttention> KernelsFor(const AttentionInputs& inputs);

// Returns |actual - expected| / |expected| of the last `queries` of the first `heads` heads, with
// the expected values computed in fp32.
double AttentionError(const at::Tensor& actual, const AttentionInputs& inputs, int64_t queries,
                      int64_t heads);

// Self-attention of `heads` heads over `tokens` tokens.
struct SelfAttentionSize {
  int64_t heads = 0;
  int64_t tokens = 0;
};

// Adds for each size a row for normal inputs, one for inputs with two outlier channels, and one for
// logits that are nine times as wide. A row's figures are the error of every kernel, of the last
// 1,500 queries of two heads, and the engine's as a multiple of cuDNN's.
absl::Status AddAttentionErrors(const std::vector<SelfAttentionSize>& sizes, Session& session);

}  // namespace wan
