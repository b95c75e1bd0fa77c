// Attention kernels that are compared, and their errors against fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "benchmarks/session.h"

namespace wan {

// The head size of the transformers, for which cuDNN's kernel and ours are optimised.
inline constexpr int64_t kTransformerHeadDim = 128;

// Each tensor is [1, tokens, heads, head_dim]; all have one dtype.
struct AttentionInputs {
  at::Tensor query;
  at::Tensor key;
  at::Tensor value;
};

struct NamedAttention {
  std::string name;
  std::string error;  // the name of this kernel's error in a row
  at::Tensor (*run)(const AttentionInputs& inputs);
};

// Returns the kernels that can compute `inputs`. The first is the kernel that the engine chooses.
// On a GPU, cuDNN's kernel and the 8-bit kernel follow, and our own kernel for Hopper unless the
// engine chooses that.
std::vector<NamedAttention> KernelsFor(const AttentionInputs& inputs);

// Returns |actual - expected| / |expected| for the last `queries` queries of the first `heads`
// heads; `expected` is computed in fp32.
double AttentionError(const at::Tensor& actual, const AttentionInputs& inputs, int64_t queries,
                      int64_t heads);

// A self-attention with `heads` heads over `tokens` tokens.
struct SelfAttentionSize {
  int64_t heads = 0;
  int64_t tokens = 0;
};

// Adds rows for each size: normal inputs, inputs with two outlier channels, logits nine times as
// wide, and logits of five widths with and without two channels far from 0. Each row has every
// kernel's error for the last 1,500 queries of two heads, and the engine's error relative to
// cuDNN's.
absl::Status AddAttentionErrors(const std::vector<SelfAttentionSize>& sizes, Session& session);

}  // namespace wan
