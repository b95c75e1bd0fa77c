#include "engine/costs/wan/umt5_cost.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/costs/memory_walk.h"

namespace wan {
namespace {

constexpr int64_t kFp32 = 4;

// Returns the name of the packed tensor that contains this one: weights that are multiplied with
// the same input are packed into one. Empty if the tensor is not packed.
std::string_view PackOf(std::string_view name) {
  for (const std::string_view projection : {".attn.q.weight", ".attn.k.weight", ".attn.v.weight"}) {
    if (name.ends_with(projection)) return "qkv";
  }
  for (const std::string_view projection : {".ffn.gate.0.weight", ".ffn.fc1.weight"}) {
    if (name.ends_with(projection)) return "ffn_in";
  }
  return {};
}

WeightDtype DtypeOf(std::string_view name, bool eight_bits) {
  if (name.find("norm") != std::string_view::npos) return WeightDtype::kFp32;
  const bool is_bias = name.find("pos_embedding") != std::string_view::npos;
  return eight_bits && !is_bias ? WeightDtype::kRounded : WeightDtype::kCompute;
}

}  // namespace

WeightGroups TextEncoderWeightGroups(const TextEncoderConfig& config, bool eight_bits) {
  WeightGroups groups(1 + static_cast<size_t>(config.num_layers));
  for (TensorSpec& tensor : ExpectedTensors(config)) {
    const std::string name = tensor.name;  // copied, because the tensor is moved from below
    const std::optional<BlockTensor> in_block = FindInBlock(name);
    const size_t group = in_block.has_value() ? 1 + in_block->block : 0;
    groups.Add(group, std::move(tensor), DtypeOf(name, eight_bits), PackOf(name));
  }
  return groups;
}

uint64_t TextEncodingBytes(const TextEncoderConfig& config, int64_t tokens, int64_t element_bytes) {
  const int64_t inner = config.num_heads * config.head_dim;
  const int64_t scores = config.num_heads * tokens * tokens;
  MemoryWalk walk;
  const auto buckets = walk.Take(8 * tokens * tokens);
  const auto residual = walk.Take(tokens * config.dim * kFp32);
  const auto states = walk.Take(tokens * config.dim * element_bytes);
  {
    const auto wide = walk.Take(tokens * config.dim * kFp32);
    const auto norm = walk.Take(tokens * config.dim * element_bytes);
    const auto qkv = walk.Take(3 * tokens * inner * element_bytes);
    const auto bias = walk.Take(scores * element_bytes);
    // The attention kernel makes a copy of its bias with aligned rows.
    const auto aligned = walk.Take(scores * element_bytes);
    const auto mixed = walk.Take(2 * tokens * inner * element_bytes);
    walk.Touch(tokens * config.dim * element_bytes);
  }
  {
    const auto norm = walk.Take(tokens * config.dim * element_bytes);
    const auto halves = walk.Take(2 * tokens * config.ffn_dim * element_bytes);
    const auto gate = walk.Take(tokens * config.ffn_dim * element_bytes);
    walk.Touch(tokens * config.dim * element_bytes);
  }
  return walk.peak();
}

uint64_t RestoredMatrixBytes(const TextEncoderConfig& config, int64_t element_bytes) {
  const int64_t rows = std::max(3 * config.num_heads * config.head_dim, 2 * config.ffn_dim);
  MemoryWalk walk;
  walk.Touch(rows * config.dim * element_bytes);
  return walk.peak();
}

double TextEncoderFlops(const TextEncoderConfig& config, int64_t tokens) {
  const double inner = static_cast<double>(config.num_heads * config.head_dim);
  const double dim = static_cast<double>(config.dim);
  const double per_token = 8 * dim * inner + 6 * dim * static_cast<double>(config.ffn_dim) +
                           4 * static_cast<double>(tokens) * inner;
  return static_cast<double>(config.num_layers * tokens) * per_token;
}

}  // namespace wan
