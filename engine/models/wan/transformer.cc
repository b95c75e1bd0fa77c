#include "engine/models/wan/transformer.h"

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/costs/wan/transformer_cost.h"
#include "engine/models/wan/activations.h"
#include "engine/models/wan/block_gate.h"
#include "engine/models/wan/forward_graphs.h"
#include "engine/models/wan/patches.h"
#include "engine/models/wan/shared_tokens.h"
#include "engine/models/wan/timestep_rows.h"
#include "engine/models/wan/transformer_weights.h"
#include "engine/models/wan/wan_text.h"
#include "engine/ops/attention.h"
#include "engine/ops/gate_residual_norm.h"
#include "engine/ops/layer_norm_modulate.h"
#include "engine/ops/linear.h"
#include "engine/ops/rms_norm_rope.h"
#include "engine/ops/rotary_table.h"
#include "engine/ops/rounded_attention.h"
#include "engine/ops/rounded_linear.h"
#include "engine/ops/rounding.h"
#include "engine/ops/sinusoidal_embedding.h"

namespace wan {
namespace {

// Shift, factor and gate of one norm and of the block part after it; one row per distinct timestep.
struct Modulation {
  at::Tensor shift;
  at::Tensor factor;
  at::Tensor gate;  // undefined for the transformer's head
};

// `table` is [timesteps, 3 * k, dim]. Returns its vectors 3 * k, 3 * k + 1 and 3 * k + 2 as shift,
// factor and gate.
Modulation ModulationAt(const at::Tensor& table, int64_t k) {
  return {table.select(1, 3 * k), table.select(1, 3 * k + 1), table.select(1, 3 * k + 2)};
}

void End(BlockStep step, BlockMarks* marks) {
  if (marks != nullptr) marks->End(static_cast<size_t>(step));
}

class WanTransformer final : public RankTransformer {
 public:
  WanTransformer(const TransformerConfig& config, const AttentionLimits& attention_limits,
                 int64_t fewest_overlapped_tokens, std::shared_ptr<DeviceGraphRecorder> recorder,
                 const KeptBits& kept, WeightLoader& loader)
      : config_(config),
        attention_limits_(attention_limits),
        fewest_overlapped_tokens_(fewest_overlapped_tokens),
        device_(loader.device()),
        dtype_(loader.dtype()),
        weights_(LoadTransformerWeights(loader, config, kept)),
        weight_bytes_(loader.bytes()),
        graphs_(recorder == nullptr ? nullptr
                                    : std::make_unique<ForwardGraphs>(std::move(recorder))) {}

  const TransformerConfig& config() const override { return config_; }

  int64_t WeightBytes() const override { return weight_bytes_; }

  void RecordForwards(bool record) override {
    records_ = record && graphs_ != nullptr;
    if (!records_ && graphs_ != nullptr) graphs_->Release();
  }
  int64_t RecordedBytes() const override { return graphs_ == nullptr ? 0 : graphs_->Bytes(); }

  void ShareTokens(Communicator* peers) override { peers_ = peers; }

  void MarkBlock(BlockMarks* marks) override { marks_ = marks; }

  absl::StatusOr<std::shared_ptr<const TextConditioning>> PrepareText(
      std::span<const at::Tensor> contexts, const WorkGate& gate) override;

  absl::StatusOr<at::Tensor> Forward(const at::Tensor& latents, const at::Tensor& timestep,
                                     const TextConditioning& text, const WorkGate& gate,
                                     const ForwardPolicy& policy) override;

 private:
  int64_t head_dim() const { return config_.dim / config_.num_heads; }

  // Returns the group of weights that a forward uses after the group of `block`.
  size_t NextVideoGroup(size_t block) const {
    return weights_.VideoGroup((block + 1) % weights_.blocks.size());
  }

  absl::Status CheckLatents(const at::Tensor& latents) const;
  // Returns INVALID_ARGUMENT unless the weights have the precision that the policy needs.
  absl::Status CheckPolicy(const ForwardPolicy& policy) const;

  // Returns the rotary table for the tokens of `grid`.
  const at::Tensor& RotaryOf(const TokenGrid& grid, TokenTables& tables) const;

  // Returns `rows` as an index on the device; undefined if there is only one timestep. The function
  // keeps the index in `tables`, because the same tokens share a timestep in every step.
  const at::Tensor& IndexOf(TimestepRows rows, TokenTables& tables) const;

  // Computes the forward: queues work on the device and copies nothing to it. Calls Use for each
  // block of `weights`; null means that all weights are on the device. Marks the middle block's
  // operators in `marks` unless that is null. With BlockUse::kComputeAndKeep, writes the sum that
  // the blocks add to the residual stream to `change`. With kReuse, computes no blocks, and adds
  // the earlier contents of `change`.
  absl::StatusOr<at::Tensor> Compute(const ForwardShape& shape, const ForwardInputs& inputs,
                                     ComponentWeights* weights, const WorkGate& gate,
                                     BlockMarks* marks, at::Tensor* change) const;

  // Computes all blocks on acts.residual, but leaves the last block's output in acts.narrow. The
  // caller adds that output times the returned gate. Use must have been called for the first block.
  absl::StatusOr<at::Tensor> ComputeBlocks(const ForwardShape& shape, const ForwardInputs& inputs,
                                           const SharedTokens& shared, const at::Tensor& index,
                                           const at::Tensor& time, ComponentWeights* weights,
                                           Activations& acts, BlockGate& gate,
                                           BlockMarks* marks) const;

  // Returns the time embedding of each timestep, [timesteps, dim].
  at::Tensor EmbedTime(const at::Tensor& sinusoids) const;

  // Each of the three block parts takes its normalised and modulated input from acts.narrow, and
  // leaves its result in acts.narrow. `rotary` has one row per token of this rank; `marks` is null
  // except in the marked block.
  absl::Status SelfAttention(const TransformerBlockWeights& block, const SharedTokens& shared,
                             int64_t batch, const at::Tensor& rotary, Activations& acts,
                             BlockGate& gate, BlockMarks* marks) const;
  // Computes attention over queries, keys and values that lie side by side, [B, n, 3, heads,
  // head_dim]. A long attention is computed in several parts, and Mix passes the gate between them.
  // With `eight_bits` the codes of queries and keys overwrite them.
  absl::StatusOr<at::Tensor> Mix(const at::Tensor& heads, bool eight_bits, BlockGate& gate) const;
  void CrossAttention(const TransformerBlockWeights& block, const at::Tensor& text,
                      Activations& acts, BlockMarks* marks) const;
  void FeedForward(const TransformerBlockWeights& block, Activations& acts,
                   BlockMarks* marks) const;

  const TransformerConfig config_;
  const AttentionLimits attention_limits_;
  const int64_t fewest_overlapped_tokens_;
  const at::Device device_;
  const at::ScalarType dtype_;
  const TransformerWeights weights_;
  const int64_t weight_bytes_;
  const std::unique_ptr<ForwardGraphs> graphs_;  // null: forwards are not recorded
  bool records_ = false;
  Communicator* peers_ = nullptr;  // null: this rank computes forwards alone
  BlockMarks* marks_ = nullptr;    // where the next forward marks its operators; null: nowhere

  // The tables of the last prepared texts, for as long as those texts live.
  std::weak_ptr<TokenTables> tables_;
};

absl::StatusOr<std::shared_ptr<const TextConditioning>> WanTransformer::PrepareText(
    std::span<const at::Tensor> contexts, const WorkGate& gate) {
  if (contexts.empty()) return absl::InvalidArgumentError("no text to prepare");
  const int64_t batch = static_cast<int64_t>(contexts.size());
  const at::Tensor padded = at::zeros({batch, config_.text_len, config_.text_dim},
                                      at::TensorOptions(device_).dtype(dtype_));
  for (int64_t i = 0; i < batch; ++i) {
    const at::Tensor& context = contexts[i];
    if (context.dim() != 2 || context.size(0) > config_.text_len ||
        context.size(1) != config_.text_dim || !context.is_floating_point()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "text ", i, " has shape [", absl::StrJoin(context.sizes(), ", "), "], dtype ",
          at::toString(context.scalar_type()), "; expected floating point, at most ",
          config_.text_len, " rows of ", config_.text_dim));
    }
    padded.select(0, i).narrow(0, 0, context.size(0)).copy_(context);
  }

  weights_.memory->Use(weights_.TextGroup(0), weights_.TextGroup(0));
  const int64_t rows = batch * config_.text_len;
  const auto options = padded.options();
  at::Tensor hidden = at::empty({rows, config_.dim}, options);
  LinearGelu(padded.view({rows, config_.text_dim}), weights_.text_in.weight, weights_.text_in.bias,
             hidden);
  at::Tensor states = at::empty({rows, config_.dim}, options);
  Linear(hidden, weights_.text_out.weight, weights_.text_out.bias, states);

  std::shared_ptr<TokenTables> tables = tables_.lock();
  if (tables == nullptr) tables = std::make_shared<TokenTables>();
  tables_ = tables;
  auto conditioning = std::make_shared<WanTextConditioning>(this, batch, std::move(tables));
  const size_t count = weights_.blocks.size();
  const at::Tensor layers =
      at::empty({static_cast<int64_t>(count), rows, 2 * config_.dim}, options);
  conditioning->layers = layers.view(
      {static_cast<int64_t>(count), batch, config_.text_len, 2, config_.num_heads, head_dim()});
  for (size_t i = 0; i < count; ++i) {
    weights_.memory->Use(weights_.TextGroup(i),
                         i + 1 < count ? weights_.TextGroup(i + 1) : weights_.VideoGroup(0));
    const TransformerBlockWeights& block = weights_.blocks[i];
    at::Tensor packed = layers.select(0, static_cast<int64_t>(i));
    Linear(states, block.cross_kv.weight, block.cross_kv.bias, packed);
    at::Tensor keys = packed.narrow(1, 0, config_.dim);
    RmsNormRope(keys, block.cross_k_norm, config_.eps, /*rotary=*/{});
    if (absl::Status status = gate.Pass(TextBlockFlops(config_, batch)); !status.ok())
      return status;
  }
  return conditioning;
}

absl::StatusOr<at::Tensor> WanTransformer::Forward(const at::Tensor& latents,
                                                   const at::Tensor& timestep,
                                                   const TextConditioning& text,
                                                   const WorkGate& gate,
                                                   const ForwardPolicy& policy) {
  BlockMarks* const marks = std::exchange(marks_, nullptr);
  if (absl::Status status = CheckLatents(latents); !status.ok()) return status;
  if (absl::Status status = CheckPolicy(policy); !status.ok()) return status;
  const auto* const conditioning = dynamic_cast<const WanTextConditioning*>(&text);
  if (conditioning == nullptr || conditioning->owner() != this) {
    return absl::InvalidArgumentError("the text was prepared by another transformer");
  }
  const int64_t batch = latents.size(0);
  if (text.batch() != batch) {
    return absl::InvalidArgumentError(
        absl::StrCat(batch, " latents, but ", text.batch(), " texts"));
  }
  TokenGrid grid;
  for (int axis = 0; axis < 3; ++axis) {
    grid[axis] = latents.size(2 + axis) / config_.patch_size[axis];
  }
  const int64_t tokens = grid[0] * grid[1] * grid[2];
  absl::StatusOr<TimestepRows> timestep_rows = FindTimestepRows(timestep, batch, tokens);
  if (!timestep_rows.ok()) return timestep_rows.status();

  ForwardInputs inputs;
  inputs.latents = latents.to(device_);
  // Copy without waiting: otherwise the device would be idle while the first kernels are launched.
  inputs.sinusoids =
      SinusoidalEmbedding(at::tensor(timestep_rows->timesteps, at::kDouble), config_.freq_dim)
          .to(device_, /*non_blocking=*/true);
  inputs.text = conditioning->layers;
  const ForwardShape shape{batch, grid, *timestep_rows, policy};
  inputs.index = IndexOf(*std::move(timestep_rows), conditioning->tables());
  inputs.rotary = RotaryOf(grid, conditioning->tables());

  const double flops = TransformerForwardFlops(config_, tokens, batch);
  if (!records_ || peers_ != nullptr || flops > kMostGraphedFlops || !weights_.memory->IsUp() ||
      marks != nullptr || policy.blocks != BlockUse::kCompute) {
    return Compute(shape, inputs, weights_.memory.get(), gate, marks, &conditioning->change);
  }
  // Before a graph is recorded or replayed, all weights must have arrived and been patched.
  weights_.memory->UseAll();
  at::Tensor flow = graphs_->Run(
      {shape, conditioning->id(), weights_.memory->Placement(),
       static_cast<int64_t>(ForwardBytes(config_, tokens, batch, at::elementSize(dtype_)))},
      inputs, [&](const ForwardInputs& recorded) {
        return Compute(shape, recorded, /*weights=*/nullptr, /*gate=*/{}, /*marks=*/nullptr,
                       /*change=*/nullptr)
            .value();
      });
  if (absl::Status status = gate.Pass(flops); !status.ok()) return status;
  return flow;
}

absl::StatusOr<at::Tensor> WanTransformer::Compute(const ForwardShape& shape,
                                                   const ForwardInputs& inputs,
                                                   ComponentWeights* weights, const WorkGate& gate,
                                                   BlockMarks* marks, at::Tensor* change) const {
  const int64_t batch = shape.batch;
  const TokenGrid& grid = shape.grid;
  const int64_t tokens = grid[0] * grid[1] * grid[2];
  const SharedTokens shared(peers_, tokens, config_.num_heads, fewest_overlapped_tokens_);
  const at::Tensor index =
      inputs.index.defined() ? shared.OwnRows(inputs.index, batch) : at::Tensor();
  const bool reuses = shape.policy.blocks == BlockUse::kReuse;
  // Use also makes the weights outside the blocks ready.
  if (weights != nullptr && reuses) weights->Use(0, 0);
  if (weights != nullptr && !reuses) weights->Use(weights_.VideoGroup(0), NextVideoGroup(0));
  const at::Tensor time = EmbedTime(inputs.sinusoids);

  const int64_t rows = batch * shared.tokens();
  const int64_t widest = std::max(3 * config_.dim, config_.ffn_dim);
  const auto options = at::TensorOptions(device_);
  const auto memory_for = [&](int64_t columns, at::ScalarType dtype) {
    return rows * columns * static_cast<int64_t>(at::elementSize(dtype));
  };
  Activations acts;
  acts.residual =
      at::linear(shared.OwnRows(ToPatches(inputs.latents, grid, config_.patch_size), batch),
                 weights_.patch_embedding.weight, weights_.patch_embedding.bias);
  acts.wide = at::empty({std::max(memory_for(widest, dtype_), memory_for(config_.dim, at::kFloat))},
                        options.dtype(at::kByte));

  // The head computes in fp32. It adds the time embedding itself, not the embedding's projection,
  // to its modulation vectors.
  const at::Tensor head_table = at::add(time.unsqueeze(1), weights_.head_modulation);
  const at::Tensor head_factor = head_table.select(1, 1);
  const at::Tensor head_shift = head_table.select(1, 0);
  at::Tensor head_input = Carve(acts.wide, rows, config_.dim, at::kFloat);
  if (reuses) {
    if (!change->defined() || change->sizes() != acts.residual.sizes()) {
      return absl::InvalidArgumentError("the text has kept no change for latents of this shape");
    }
    acts.residual.add_(*change);
    LayerNormModulate(acts.residual, head_factor, head_shift, index, config_.eps, head_input);
  } else {
    const bool keeps = shape.policy.blocks == BlockUse::kComputeAndKeep;
    // Free the previous contribution before memory for the next is allocated.
    if (keeps) change->reset();
    at::Tensor before = keeps ? acts.residual.clone() : at::Tensor();
    acts.narrow = at::empty({rows, config_.dim}, options.dtype(dtype_));
    if (shape.policy.eight_bits) acts.rounded = RoundedIn(acts.narrow, config_.dim);
    BlockGate block_gate(gate, TransformerBlockFlops(config_, tokens, batch), shared.ranks());
    const absl::StatusOr<at::Tensor> last_gate =
        ComputeBlocks(shape, inputs, shared, index, time, weights, acts, block_gate, marks);
    if (!last_gate.ok()) return last_gate.status();
    GateResidualNorm(acts.narrow, *last_gate, acts.residual, head_factor, head_shift, index,
                     config_.eps, head_input);
    if (keeps) *change = at::sub_out(before, acts.residual, before);
  }
  const absl::StatusOr<at::Tensor> patches =
      shared.AllRows(at::linear(head_input, weights_.head.weight, weights_.head.bias), batch);
  if (!patches.ok()) return patches.status();
  return FromPatches(*patches, grid, config_.patch_size);
}

// NOLINTNEXTLINE(readability-function-size)
absl::StatusOr<at::Tensor> WanTransformer::ComputeBlocks(
    const ForwardShape& shape, const ForwardInputs& inputs, const SharedTokens& shared,
    const at::Tensor& index, const at::Tensor& time, ComponentWeights* weights, Activations& acts,
    BlockGate& gate, BlockMarks* marks) const {
  const int64_t batch = shape.batch;
  const int64_t tokens = shape.grid[0] * shape.grid[1] * shape.grid[2];
  const at::Tensor rotary = shared.OwnRows(inputs.rotary, /*batch=*/1);
  const size_t count = weights_.blocks.size();
  // Six modulation vectors per timestep; every block adds six vectors of its own to them.
  const at::Tensor time_modulation =
      at::linear(at::silu(time), weights_.time_projection.weight, weights_.time_projection.bias)
          .view({-1, 6, config_.dim});
  const auto modulation_of = [&](size_t block) {
    return at::add(time_modulation, weights_.blocks[block].modulation);
  };

  acts.rounds = shape.policy.Rounds(0);
  at::Tensor table = modulation_of(0);
  const Modulation first = ModulationAt(table, 0);
  if (acts.rounds) {
    LayerNormModulate(acts.residual, first.factor, first.shift, index, config_.eps, acts.rounded);
  } else {
    LayerNormModulate(acts.residual, first.factor, first.shift, index, config_.eps, acts.narrow);
  }
  for (size_t i = 0; i < count; ++i) {
    const TransformerBlockWeights& block = weights_.blocks[i];
    const Modulation attention = ModulationAt(table, 0);
    const Modulation feed_forward = ModulationAt(table, 1);
    // The middle block is marked because it is typical: the last block has no successor, and the
    // first may wait for the embeddings.
    BlockMarks* const block_marks = i == (count - 1) / 2 ? marks : nullptr;
    if (block_marks != nullptr) {
      block_marks->Begin(device_, static_cast<int>(i), static_cast<int>(batch),
                         BlockOperators(config_, tokens, batch, at::elementSize(dtype_)));
    }

    if (absl::Status status = SelfAttention(block, shared, batch, rotary, acts, gate, block_marks);
        !status.ok()) {
      return status;
    }
    if (absl::Status status = gate.AfterSelfAttention(); !status.ok()) return status;
    NextInput(acts, attention.gate, block.cross_norm_scale, block.cross_norm_shift, index,
              config_.eps);
    End(BlockStep::kAttentionResidual, block_marks);
    CrossAttention(block, inputs.text.select(0, static_cast<int64_t>(i)), acts, block_marks);
    NextInput(acts, /*gate=*/{}, feed_forward.factor, feed_forward.shift, index, config_.eps);
    End(BlockStep::kTextResidual, block_marks);
    FeedForward(block, acts, block_marks);
    if (absl::Status status = gate.AfterFeedForward(); !status.ok()) return status;
    if (i + 1 == count) break;
    // The last operator of a block already needs the next block's modulation, so call Use before
    // that operator.
    if (weights != nullptr) weights->Use(weights_.VideoGroup(i + 1), NextVideoGroup(i + 1));
    End(BlockStep::kNextWeights, block_marks);
    acts.rounds = shape.policy.Rounds(static_cast<int>(i) + 1);
    table = modulation_of(i + 1);
    const Modulation next = ModulationAt(table, 0);
    NextInput(acts, feed_forward.gate, next.factor, next.shift, index, config_.eps);
    End(BlockStep::kFeedForwardResidual, block_marks);
  }
  return ModulationAt(table, 1).gate;
}

absl::StatusOr<at::Tensor> WanTransformer::Mix(const at::Tensor& heads, bool eight_bits,
                                               BlockGate& gate) const {
  at::Tensor query = heads.select(2, 0);
  at::Tensor key = heads.select(2, 1);
  const at::Tensor value = heads.select(2, 2);
  const int64_t tokens = heads.size(1);
  if (heads.size(3) == 0) return query;  // this rank computes none of the heads
  const int64_t at_a_time = QueriesAtATime(config_, tokens, attention_limits_);
  const bool rounds = eight_bits && RoundsAttention(query, key);
  if (!rounds && at_a_time >= tokens) return Attention(query, key, value);
  const at::Tensor mixed = at::empty(query.sizes(), query.options());
  RoundedHeads rounded_query;
  RoundedHeads rounded_key;
  RoundedValues rounded_value;
  if (rounds) {
    rounded_query = RoundQueries(query);
    rounded_key = RoundKeys(key);
    rounded_value = RoundValues(value);
  }
  static_assert(kKeysOfTile == kRoundedKeyTile, "RoundingBytes counts whole tiles");
  static_assert(256 % kQueryMultiple == 0, "QueriesAtATime gives multiples of 256");
  for (int64_t i = 0; i < heads.size(0); ++i) {
    const auto video = [i](const at::Tensor& t) { return t.narrow(0, i, 1); };
    for (int64_t first = 0; first < tokens;) {
      const int64_t left = tokens - first;
      const bool last = left < at_a_time + attention_limits_.fewest_queries;
      const int64_t count = last ? left : at_a_time;
      at::Tensor part = video(mixed).narrow(1, first, count);
      if (rounds) {
        RoundedAttentionInto(rounded_query.Video(i).Queries(first, count), rounded_key.Video(i),
                             rounded_value.Video(i), part);
      } else {
        AttentionInto(video(query).narrow(1, first, count), video(key), video(value), part);
      }
      const double flops = AttentionFlops(config_, count, tokens) *
                           static_cast<double>(heads.size(3)) /
                           static_cast<double>(config_.num_heads);
      const absl::Status status = gate.AfterAttentionPart(flops);
      if (!status.ok()) return status;
      first += count;
    }
  }
  return mixed;
}

absl::Status WanTransformer::SelfAttention(const TransformerBlockWeights& block,
                                           const SharedTokens& shared, int64_t batch,
                                           const at::Tensor& rotary, Activations& acts,
                                           BlockGate& gate, BlockMarks* marks) const {
  const int64_t rows = acts.narrow.size(0);
  at::Tensor packed = Carve(acts.wide, rows, 3 * config_.dim, dtype_);
  MultiplyInput(acts, block.qkv, Activation::kNone, packed);
  End(BlockStep::kQueriesKeysValues, marks);
  at::Tensor queries_keys = packed.narrow(1, 0, 2 * config_.dim);
  RmsNormRope(queries_keys, block.qk_norm, config_.eps, rotary);
  End(BlockStep::kQueryKeyNorm, marks);
  const absl::StatusOr<at::Tensor> mixed =
      shared.AttendByHeads(packed.view({batch, rows / batch, 3, config_.num_heads, head_dim()}),
                           [&](const at::Tensor& heads) { return Mix(heads, acts.rounds, gate); });
  if (!mixed.ok()) return mixed.status();
  End(BlockStep::kSelfAttention, marks);
  MultiplyOutput(mixed->reshape({rows, config_.dim}), block.attention_out, acts);
  End(BlockStep::kAttentionOutput, marks);
  return absl::OkStatus();
}

void WanTransformer::CrossAttention(const TransformerBlockWeights& block, const at::Tensor& text,
                                    Activations& acts, BlockMarks* marks) const {
  const int64_t rows = acts.narrow.size(0);
  at::Tensor queries = Carve(acts.wide, rows, config_.dim, dtype_);
  MultiplyInput(acts, block.cross_q, Activation::kNone, queries);
  End(BlockStep::kTextQueries, marks);
  RmsNormRope(queries, block.cross_q_norm, config_.eps, /*rotary=*/{});
  End(BlockStep::kTextQueryNorm, marks);
  const at::Tensor mixed =
      Attention(queries.view({text.size(0), -1, config_.num_heads, head_dim()}), text.select(2, 0),
                text.select(2, 1));
  End(BlockStep::kTextAttention, marks);
  MultiplyOutput(mixed.reshape({rows, config_.dim}), block.cross_out, acts);
  End(BlockStep::kTextOutput, marks);
}

void WanTransformer::FeedForward(const TransformerBlockWeights& block, Activations& acts,
                                 BlockMarks* marks) const {
  at::Tensor hidden = Carve(acts.wide, acts.narrow.size(0), config_.ffn_dim, dtype_);
  MultiplyInput(acts, block.ffn_in, Activation::kGeluTanh, hidden);
  End(BlockStep::kFeedForwardIn, marks);
  MultiplyOutput(hidden, block.ffn_out, acts);
  End(BlockStep::kFeedForwardOut, marks);
}

absl::Status WanTransformer::CheckLatents(const at::Tensor& latents) const {
  const auto [p, q, r] = config_.patch_size;
  const bool fits = latents.dim() == 5 && latents.scalar_type() == at::kFloat &&
                    latents.numel() > 0 && latents.size(1) == config_.in_channels &&
                    latents.size(2) % p == 0 && latents.size(3) % q == 0 &&
                    latents.size(4) % r == 0;
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "latents have shape [", absl::StrJoin(latents.sizes(), ", "), "], dtype ",
      at::toString(latents.scalar_type()), "; expected fp32 [batch, ", config_.in_channels,
      ", frames, rows, columns] with multiples of ", p, ", ", q, " and ", r));
}

absl::Status WanTransformer::CheckPolicy(const ForwardPolicy& policy) const {
  for (size_t i = 0; i < weights_.blocks.size(); ++i) {
    if (!weights_.blocks[i].qkv.rounded.defined() || policy.Rounds(static_cast<int>(i))) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the forward does not round block ", i, ", whose weights are kept in 8 bits"));
  }
  return absl::OkStatus();
}

const at::Tensor& WanTransformer::RotaryOf(const TokenGrid& grid, TokenTables& tables) const {
  if (grid != tables.grid) {
    tables.rotary = RotaryTable(grid, head_dim(), device_);
    tables.grid = grid;
  }
  return tables.rotary;
}

const at::Tensor& WanTransformer::IndexOf(TimestepRows rows, TokenTables& tables) const {
  if (rows.index != tables.index_rows) {
    tables.index = rows.index.empty() ? at::Tensor() : at::tensor(rows.index, at::kInt).to(device_);
    tables.index_rows = std::move(rows.index);
  }
  return tables.index;
}

at::Tensor WanTransformer::EmbedTime(const at::Tensor& sinusoids) const {
  return at::linear(at::silu(at::linear(sinusoids, weights_.time_in.weight, weights_.time_in.bias)),
                    weights_.time_out.weight, weights_.time_out.bias);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankTransformer>> LoadWanTransformer(
    const WeightSource& weights, const TransformerConfig& config,
    const TransformerOptions& options) {
  if (options.dtype != at::kFloat && options.dtype != at::kBFloat16) {
    return absl::InvalidArgumentError(
        absl::StrCat("a transformer computes in fp32 or bf16, not ", at::toString(options.dtype)));
  }
  if (config.num_layers < 1 || config.num_heads < 1 || config.dim % (2 * config.num_heads) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(config.num_layers, " blocks of width ", config.dim, " with ", config.num_heads,
                     " heads: expected a block and heads of an even width"));
  }
  if (!config.qk_norm || !config.cross_attn_norm) {
    return absl::UnimplementedError(
        "a transformer without norms of queries and keys, or before the cross-attention");
  }
  WeightLoader loader(weights, options.device, options.dtype, options.weights, options.stop);
  static_assert(kCpuAttentionLimits.fewest_queries == kFewestCpuQueries);
  const AttentionLimits limits = options.attention_limits.value_or(
      options.device.is_cpu() ? kCpuAttentionLimits : AttentionLimits());
  auto transformer = std::make_unique<WanTransformer>(
      config, limits, options.fewest_overlapped_tokens, options.graphs,
      KeptBits{options.eight_bit_weights, options.exact_blocks}, loader);
  if (!loader.status().ok()) return loader.status();
  return transformer;
}

}  // namespace wan
