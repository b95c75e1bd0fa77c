#include "engine/models/wan/umt5.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/rms_norm.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/tensor.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/models/wan/relative_position.h"
#include "engine/ops/rounding.h"
#include "engine/weights/weight_loader.h"

namespace wan {
namespace {

// Epsilon of every T5 norm, fixed by the architecture; checkpoints do not store it.
constexpr double kEps = 1e-6;

// A matrix in the compute dtype or in 8 bits.
struct Matrix {
  at::Tensor weight;    // undefined if the matrix is in 8 bits
  RoundedRows rounded;  // undefined if the matrix is in the compute dtype
};

// Returns the product of x with the transposed matrix.
at::Tensor Multiply(const at::Tensor& x, const Matrix& matrix) {
  if (!matrix.rounded.defined()) return at::linear(x, matrix.weight);
  at::Tensor restored = at::empty(matrix.rounded.codes.sizes(), x.options());
  RestoreRows(matrix.rounded, restored);
  return at::linear(x, restored);
}

struct Umt5Block {
  at::Tensor attention_norm;  // fp32 [dim]
  Matrix qkv;                 // [3 * heads * head_dim, dim]: queries, keys, values
  Matrix attention_out;       // [dim, heads * head_dim]
  at::Tensor position_bias;   // [heads, buckets]
  at::Tensor ffn_norm;        // fp32 [dim]
  Matrix ffn_in;              // [2 * ffn_dim, dim]: gate, value
  Matrix ffn_out;             // [dim, ffn_dim]
};

class Umt5 final : public TextEncoder {
 public:
  Umt5(const TextEncoderConfig& config, bool eight_bits, WeightLoader& loader);

  const TextEncoderConfig& config() const override { return config_; }

  absl::StatusOr<at::Tensor> Encode(std::span<const int64_t> ids, const WorkGate& gate) override;

  int64_t WeightBytes() const override { return weight_bytes_; }

 private:
  // Loads several matrices [out, in] that multiply the same input, as one matrix.
  Matrix LoadMatrix(WeightLoader& loader, std::span<const std::string> names, int64_t out,
                    int64_t in) const;
  Umt5Block LoadBlock(WeightLoader& loader, const std::string& prefix) const;
  // Returns the tokens' vectors in fp32, [tokens, dim].
  at::Tensor Embed(const at::Tensor& tokens) const;

  at::Tensor Norm(const at::Tensor& x, const at::Tensor& weight) const {
    return at::rms_norm(x, {config_.dim}, weight, kEps).to(dtype_);
  }

  // `buckets` has length * length elements.
  at::Tensor SelfAttention(const Umt5Block& block, const at::Tensor& x,
                           const at::Tensor& buckets) const;
  at::Tensor FeedForward(const Umt5Block& block, const at::Tensor& x) const;

  const TextEncoderConfig config_;
  const at::Device device_;
  const at::ScalarType dtype_;
  const bool eight_bits_;
  Matrix token_table_;  // [vocab_size, dim]
  std::vector<Umt5Block> blocks_;
  at::Tensor final_norm_;  // fp32, shape [dim]
  int64_t weight_bytes_ = 0;
  // The groups of weights are: the token table and the last norm; then one group per block.
  std::shared_ptr<ComponentWeights> memory_;
};

Umt5::Umt5(const TextEncoderConfig& config, bool eight_bits, WeightLoader& loader)
    : config_(config), device_(loader.device()), dtype_(loader.dtype()), eight_bits_(eight_bits) {
  const std::string table = "token_embedding.weight";
  token_table_ = LoadMatrix(loader, {&table, 1}, config.vocab_size, config.dim);
  final_norm_ = loader.Get("norm.weight", {config.dim}, at::kFloat);
  for (int64_t i = 0; i < config.num_layers; ++i) {
    loader.BeginGroup();
    blocks_.push_back(LoadBlock(loader, absl::StrCat("blocks.", i, ".")));
  }
  weight_bytes_ = loader.bytes();
  memory_ = loader.Finish();
}

Matrix Umt5::LoadMatrix(WeightLoader& loader, std::span<const std::string> names, int64_t out,
                        int64_t in) const {
  Matrix matrix;
  if (eight_bits_) {
    // The codes are int8: Multiply converts each matrix back before its product, so e4m3 would gain
    // no speed, and int8 has the smaller error.
    matrix.rounded = loader.GetRoundedStacked(names, {out, in}, at::kChar);
  } else {
    matrix.weight = loader.GetStacked(names, {out, in}, dtype_);
  }
  return matrix;
}

Umt5Block Umt5::LoadBlock(WeightLoader& loader, const std::string& prefix) const {
  const int64_t dim = config_.dim;
  const int64_t inner = config_.num_heads * config_.head_dim;
  const auto get = [&](const char* name, int64_t out, int64_t in) {
    const std::string full_name = prefix + name;
    return LoadMatrix(loader, {&full_name, 1}, out, in);
  };
  Umt5Block block;
  block.attention_norm = loader.Get(prefix + "norm1.weight", {dim}, at::kFloat);
  const std::array<std::string, 3> qkv = {prefix + "attn.q.weight", prefix + "attn.k.weight",
                                          prefix + "attn.v.weight"};
  block.qkv = LoadMatrix(loader, qkv, inner, dim);
  block.attention_out = get("attn.o.weight", dim, inner);
  block.position_bias =
      loader
          .Get(prefix + "pos_embedding.embedding.weight", {config_.num_buckets, config_.num_heads})
          .t();
  block.ffn_norm = loader.Get(prefix + "norm2.weight", {dim}, at::kFloat);
  const std::array<std::string, 2> ffn = {prefix + "ffn.gate.0.weight", prefix + "ffn.fc1.weight"};
  block.ffn_in = LoadMatrix(loader, ffn, config_.ffn_dim, dim);
  block.ffn_out = get("ffn.fc2.weight", dim, config_.ffn_dim);
  return block;
}

absl::StatusOr<at::Tensor> Umt5::Encode(std::span<const int64_t> ids, const WorkGate& gate) {
  if (ids.empty())
    return absl::InvalidArgumentError(
        "there are no token ids; must be at least one, because even an empty text has its end "
        "mark");
  for (const int64_t id : ids) {
    if (id < 0 || id >= config_.vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "token id ", id, " is not in the text encoder's vocabulary of ", config_.vocab_size));
    }
  }
  const int64_t length = static_cast<int64_t>(ids.size());
  const at::Tensor buckets =
      RelativePositionBuckets(length, config_.num_buckets).flatten().to(device_);
  const at::Tensor tokens =
      at::tensor(at::IntArrayRef(ids.data(), ids.size()), at::kLong).to(device_);

  memory_->Use(1, 1);
  // The residual stream is always fp32, because in bf16 it would be the largest source of error.
  at::Tensor residual = Embed(tokens);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    // After the last block, fetch the first block, which the next text will use.
    memory_->Use(1 + i, 1 + (i + 1) % blocks_.size());
    const Umt5Block& block = blocks_[i];
    residual.add_(SelfAttention(block, Norm(residual, block.attention_norm), buckets));
    residual.add_(FeedForward(block, Norm(residual, block.ffn_norm)));
    // Pass the gate without a number of operations: a layer of at most 512 tokens has fewer
    // operations than the gate's smallest unit.
    if (absl::Status status = gate.Pass(); !status.ok()) return status;
  }
  return Norm(residual, final_norm_);
}

at::Tensor Umt5::Embed(const at::Tensor& tokens) const {
  if (eight_bits_) return token_table_.rounded.Select(tokens).ToFloat();
  return at::embedding(token_table_.weight, tokens).to(at::kFloat);
}

at::Tensor Umt5::SelfAttention(const Umt5Block& block, const at::Tensor& x,
                               const at::Tensor& buckets) const {
  const int64_t length = x.size(0);
  const at::Tensor heads = Multiply(x, block.qkv)
                               .view({1, length, 3, config_.num_heads, config_.head_dim})
                               .transpose(1, 3);  // shape [1, heads, 3, length, head_dim]
  const at::Tensor bias =
      block.position_bias.index_select(1, buckets).view({1, config_.num_heads, length, length});
  // T5 does not divide its scores by sqrt(head_dim).
  const at::Tensor mixed = at::scaled_dot_product_attention(
      heads.select(2, 0), heads.select(2, 1), heads.select(2, 2), bias, /*dropout_p=*/0.0,
      /*is_causal=*/false, /*scale=*/1.0);
  return Multiply(mixed.transpose(1, 2).reshape({length, -1}), block.attention_out);
}

at::Tensor Umt5::FeedForward(const Umt5Block& block, const at::Tensor& x) const {
  const std::vector<at::Tensor> halves = Multiply(x, block.ffn_in).chunk(2, /*dim=*/1);
  return Multiply(at::gelu(halves[0], "tanh").mul_(halves[1]), block.ffn_out);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextEncoder>> LoadUmt5(const WeightSource& weights,
                                                      const TextEncoderConfig& config,
                                                      const Umt5Options& options) {
  WeightLoader loader(weights, options.device, options.dtype, options.weights, options.stop);
  auto encoder = std::make_unique<Umt5>(config, options.eight_bit_weights, loader);
  if (!loader.status().ok()) return loader.status();
  return encoder;
}

}  // namespace wan
