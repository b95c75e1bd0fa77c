#include "engine/costs/wan/transformer_cost.h"

#include <algorithm>
#include <cmath>
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
  struct Packed {
    std::string_view projection;  // a tensor's name up to its last part, "weight" or "bias"
    std::string_view weights;
    std::string_view biases;
  };
  constexpr Packed kPacked[] = {
      {"self_attn.q.", "qkv.weight", "qkv.bias"},
      {"self_attn.k.", "qkv.weight", "qkv.bias"},
      {"self_attn.v.", "qkv.weight", "qkv.bias"},
      {"self_attn.norm_q.", "qk_norm", ""},
      {"self_attn.norm_k.", "qk_norm", ""},
      {"cross_attn.k.", "cross_kv.weight", "cross_kv.bias"},
      {"cross_attn.v.", "cross_kv.weight", "cross_kv.bias"},
  };
  for (const Packed& packed : kPacked) {
    if (!name.starts_with(packed.projection)) continue;
    return name.ends_with("weight") ? packed.weights : packed.biases;
  }
  return {};
}

// Outside the blocks, only the weights of the text projection have the compute dtype.
WeightDtype DtypeOutsideBlocks(std::string_view name) {
  return name.starts_with("text_embedding.") ? WeightDtype::kCompute : WeightDtype::kFp32;
}

WeightDtype DtypeInBlock(std::string_view name) {
  const bool modulation = name == "modulation";
  const bool norm = name.find("norm") != std::string_view::npos;
  return modulation || norm ? WeightDtype::kFp32 : WeightDtype::kCompute;
}

// Returns whether the tensor computes the text's keys and values, which a job does only once.
bool IsTextPart(std::string_view name) {
  return name.starts_with("cross_attn.k.") || name.starts_with("cross_attn.v.") ||
         name.starts_with("cross_attn.norm_k.");
}

// Returns whether a block's tensor is a matrix that forwards multiply with.
bool IsVideoMatrix(std::string_view name) {
  return DtypeInBlock(name) == WeightDtype::kCompute && name.ends_with(".weight") &&
         !IsTextPart(name);
}

}  // namespace

WeightGroups TransformerWeightGroups(const TransformerConfig& config, bool eight_bits,
                                     const std::vector<int>& exact_blocks) {
  const auto blocks = static_cast<size_t>(config.num_layers);
  WeightGroups groups(1 + 2 * blocks);
  for (TensorSpec& tensor : ExpectedTensors(config)) {
    // Copy the name, because `tensor` is moved from below.
    const std::string name = tensor.name;
    const std::optional<BlockTensor> in_block = FindInBlock(name);
    if (!in_block.has_value()) {
      groups.Add(0, std::move(tensor), DtypeOutsideBlocks(name));
      continue;
    }
    const size_t group = 1 + in_block->block + (IsTextPart(in_block->name) ? 0 : blocks);
    const bool exact = std::binary_search(exact_blocks.begin(), exact_blocks.end(),
                                          static_cast<int>(in_block->block));
    const WeightDtype dtype = eight_bits && !exact && IsVideoMatrix(in_block->name)
                                  ? WeightDtype::kRounded
                                  : DtypeInBlock(in_block->name);
    groups.Add(group, std::move(tensor), dtype, PackOf(in_block->name));
  }
  return groups;
}

uint64_t TextConditioningBytes(const TransformerConfig& config, int64_t texts,
                               int64_t element_bytes) {
  MemoryWalk walk;
  walk.Touch(config.num_layers * texts * config.text_len * 2 * config.dim * element_bytes);
  return walk.peak();
}

uint64_t KeptBlocksBytes(const TransformerConfig& config, int64_t tokens, int64_t texts,
                         int64_t ranks) {
  const int64_t own = (tokens + ranks - 1) / ranks;
  MemoryWalk walk;
  const auto kept = walk.Take(texts * own * config.dim * kFp32);
  const auto norms = walk.Take(2 * texts * own * kFp32);
  return walk.peak();
}

uint64_t TextPreparationBytes(const TransformerConfig& config, int64_t batch,
                              int64_t element_bytes) {
  const int64_t rows = batch * config.text_len;
  MemoryWalk walk;
  const auto padded = walk.Take(rows * config.text_dim * element_bytes);
  const auto hidden = walk.Take(rows * config.dim * element_bytes);
  const auto states = walk.Take(rows * config.dim * element_bytes);
  return walk.peak();
}

uint64_t ForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                      int64_t element_bytes) {
  const int64_t rows = batch * tokens;
  const int64_t patch = config.patch_size[0] * config.patch_size[1] * config.patch_size[2];
  const int64_t head_dim = config.dim / config.num_heads;
  // The modulation of two timesteps, which is the most that a step has.
  const int64_t modulation = 2 * 6 * config.dim * kFp32;

  MemoryWalk walk;
  const auto rotary = walk.Take(tokens * head_dim * kFp32);
  const auto index = walk.Take(rows * 4);
  const auto sinusoids = walk.Take(2 * config.freq_dim * kFp32);
  const auto time = walk.Take(2 * config.dim * kFp32);
  auto patches = walk.Take(rows * config.in_channels * patch * kFp32);
  const auto residual = walk.Take(rows * config.dim * kFp32);
  patches.Free();
  const auto narrow = walk.Take(rows * config.dim * element_bytes);
  const auto wide = walk.Take(std::max(
      rows * std::max(3 * config.dim, config.ffn_dim) * element_bytes, rows * config.dim * kFp32));
  {
    const auto time_modulation = walk.Take(modulation);
    const auto table = walk.Take(2 * modulation);  // modulation of one block and the next
    // Memory of the attention's result. A long attention runs in parts, and copies each part's
    // result into this memory.
    const auto attended = walk.Take(rows * config.dim * element_bytes);
    const int64_t queries = QueriesAtATime(config, tokens);
    if (queries < tokens) walk.Touch(queries * config.dim * element_bytes);
  }
  const auto head = walk.Take(rows * patch * config.out_channels * kFp32);
  walk.Touch(rows * patch * config.out_channels * kFp32);  // the head's output as a video
  return walk.peak();
}

uint64_t RoundingBytes(const TransformerConfig& config, int64_t tokens, int64_t batch) {
  const int64_t rows = batch * tokens;
  const int64_t columns = std::max(3 * config.dim, config.ffn_dim);
  MemoryWalk walk;
  const auto inputs = walk.Take(rows * kFp32);
  {
    const auto codes = walk.Take(columns * config.dim);
    const auto channels = walk.Take(2 * columns * kFp32);  // scales and the bias in fp32
    const auto outputs = walk.Take(rows * kFp32);
  }
  // Memory of the attention. For queries and keys: scales, and the keys' mean. For values: codes,
  // scales, means, largest magnitudes and rounding errors.
  const auto heads = walk.Take(2 * rows * config.num_heads * kFp32 + batch * config.dim * kFp32);
  const int64_t padded = (tokens + kKeysOfTile - 1) / kKeysOfTile * kKeysOfTile;
  const auto values = walk.Take(batch * padded * config.dim + 5 * batch * config.dim * kFp32);
  return walk.peak();
}

uint64_t RecordedForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                              int64_t element_bytes) {
  if (TransformerForwardFlops(config, tokens, batch) > kMostGraphedFlops) return 0;
  const int64_t patch = config.patch_size[0] * config.patch_size[1] * config.patch_size[2];
  const int64_t rows = batch * tokens;
  MemoryWalk walk;
  const auto latents = walk.Take(rows * patch * config.in_channels * kFp32);
  const auto sinusoids = walk.Take(2 * config.freq_dim * kFp32);
  const auto text =
      walk.Take(config.num_layers * batch * config.text_len * 2 * config.dim * element_bytes);
  // ForwardBytes already counts the tables and the result.
  return walk.peak() + ForwardBytes(config, tokens, batch, element_bytes);
}

BlockFlops TransformerBlockFlops(const TransformerConfig& config, int64_t tokens, int64_t batch) {
  const auto dim = static_cast<double>(config.dim);
  const auto rows = static_cast<double>(batch * tokens);
  // These are the operations per row. `per_row` counts the self-attention with its four
  // projections. `rest_per_row` counts the attention to the text with its two projections, and the
  // two products of the feed-forward layers.
  const double per_row = 8 * dim + 4 * static_cast<double>(tokens);
  const double rest_per_row =
      4 * dim + 4 * static_cast<double>(config.text_len) + 4 * static_cast<double>(config.ffn_dim);
  return {rows * dim * per_row, rows * dim * rest_per_row};
}

std::vector<BlockOperator> BlockOperators(const TransformerConfig& config, int64_t tokens,
                                          int64_t batch, int64_t element_bytes) {
  constexpr std::string_view kProjections = "projections";
  constexpr std::string_view kFeedForward = "feed_forward";
  constexpr std::string_view kElementwise = "elementwise";
  const auto dim = static_cast<double>(config.dim);
  const auto ffn = static_cast<double>(config.ffn_dim);
  const auto rows = static_cast<double>(batch * tokens);
  const auto element = static_cast<double>(element_bytes);
  const auto product = [&](std::string_view name, std::string_view operator_class, double in,
                           double out) {
    return BlockOperator{name, operator_class, 2 * rows * in * out,
                         element * (rows * in + in * out + rows * out)};
  };
  // An attention reads queries, keys and values, and writes one result per query.
  const auto attention = [&](std::string_view name, std::string_view operator_class, int64_t keys) {
    const auto pairs = static_cast<double>(keys) * rows;
    return BlockOperator{name, operator_class, 4 * pairs * dim,
                         element * dim * 2 * (rows + static_cast<double>(batch * keys))};
  };
  const auto pass = [&](std::string_view name, double bytes) {
    return BlockOperator{name, kElementwise, 0, bytes};
  };
  const double narrow = rows * dim * element;  // bytes of one activation tensor
  // bytes of a residual operator: it reads a product's output and the residual stream, and writes
  // the residual stream and the next product's input
  const double residual = 2 * narrow + 2 * rows * dim * static_cast<double>(kFp32);
  return {
      product("queries_keys_values", kProjections, dim, 3 * dim),
      pass("query_key_norm_rotary", 4 * narrow),
      attention("self_attention", "self_attention", tokens),
      product("attention_output", kProjections, dim, dim),
      pass("attention_residual_norm", residual),
      product("text_queries", kProjections, dim, dim),
      pass("text_query_norm", 2 * narrow),
      attention("text_attention", "cross_attention", config.text_len),
      product("text_output", kProjections, dim, dim),
      pass("text_residual_norm", residual),
      product("feed_forward_in_gelu", kFeedForward, dim, ffn),
      product("feed_forward_out", kFeedForward, ffn, dim),
      {"next_weights", "weights", 0, 0},
      pass("feed_forward_residual_norm", residual),
  };
}

std::vector<OperatorWork> TransformerBlockOperators(const TransformerConfig& config, int64_t tokens,
                                                    int64_t batch, int64_t element_bytes) {
  std::vector<OperatorWork> classes;
  for (const BlockOperator& one : BlockOperators(config, tokens, batch, element_bytes)) {
    if (one.bytes == 0) continue;  // skip the wait for weights, which moves no bytes
    auto found = std::find_if(classes.begin(), classes.end(), [&](const OperatorWork& known) {
      return known.name == one.operator_class;
    });
    if (found == classes.end()) found = classes.insert(classes.end(), {one.operator_class});
    found->flops += one.flops;
    found->bytes += one.bytes;
  }
  return classes;
}

double AttentionFlops(const TransformerConfig& config, int64_t queries, int64_t keys) {
  return 4 * static_cast<double>(queries) * static_cast<double>(keys) *
         static_cast<double>(config.dim);
}

int64_t QueriesAtATime(const TransformerConfig& config, int64_t tokens,
                       const AttentionLimits& limits) {
  const double flops = AttentionFlops(config, tokens, tokens);
  if (flops <= limits.whole) return tokens;
  // Kernels work on tiles of 256 queries. If parts are multiples of a tile, the result has the same
  // bits as without parts.
  constexpr int64_t kTile = 256;
  const int64_t tiles = (tokens + kTile - 1) / kTile;
  const int64_t parts = std::clamp<int64_t>(std::llround(std::ceil(flops / limits.part)), 1, tiles);
  const int64_t fewest = (limits.fewest_queries + kTile - 1) / kTile;
  return std::max((tiles + parts - 1) / parts, fewest) * kTile;
}

double TextBlockFlops(const TransformerConfig& config, int64_t batch) {
  const auto dim = static_cast<double>(config.dim);
  return 4 * static_cast<double>(batch * config.text_len) * dim * dim;
}

double TransformerEndsFlops(const TransformerConfig& config, int64_t tokens, int64_t batch) {
  const int64_t patch = config.patch_size[0] * config.patch_size[1] * config.patch_size[2];
  return 2 * static_cast<double>(batch * tokens) * static_cast<double>(config.dim * patch) *
         static_cast<double>(config.in_channels + config.out_channels);
}

double TransformerForwardFlops(const TransformerConfig& config, int64_t tokens, int64_t batch) {
  const BlockFlops block = TransformerBlockFlops(config, tokens, batch);
  return static_cast<double>(config.num_layers) * (block.self_attention + block.rest) +
         TransformerEndsFlops(config, tokens, batch);
}

}  // namespace wan
