// The network that predicts the flow of noisy latents. The denoising loop calls Forward() in every
// step.
//
//   absl::StatusOr<std::unique_ptr<VideoTransformer>> transformer = LoadWanTransformer(...);
//   auto text = (*transformer)->PrepareText({{prompt_states, negative_states}});  // once a job
//   auto flow = (*transformer)->Forward(latents, timestep, **text);               // each step
//
// Exceptions of LibTorch (c10::Error, also when device memory runs out) pass through; the runtime
// turns them into statuses.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"
#include "engine/device/work_gate.h"
#include "engine/group/communicator.h"
#include "engine/models/block_marks.h"

namespace wan {

// The texts of one batch, prepared for a transformer. Only the transformer that made the texts can
// use them. The object holds device memory and does not depend on the video's size or on timesteps.
class TextConditioning {
 public:
  virtual ~TextConditioning() = default;

  // Returns the number of texts, which is the batch size of Forward().
  virtual int64_t batch() const = 0;

  // Returns the device memory of the texts, in bytes.
  virtual int64_t Bytes() const = 0;

  // Call ChangeRatio after every forward of one text with BlockUse::kComputeAndKeep. Returns how
  // much the blocks' contribution to the residual stream has changed since the previous call: the
  // mean over all tokens of the contribution's L2 norm, divided by the previous norm. Waits for the
  // device. Returns nullopt at the first call, and if the text does not measure changes.
  virtual std::optional<double> ChangeRatio() const { return std::nullopt; }
};

// How Forward() uses the transformer's blocks.
enum class BlockUse {
  kCompute,
  // Computes the blocks, and stores in the text what they added to the residual stream. The text
  // keeps this until its next forward.
  kComputeAndKeep,
  // Computes no block; adds what the last kComputeAndKeep stored in the text.
  kReuse,
};

struct ForwardPolicy {
  // Products of the blocks and self-attention take inputs of 8 bits (engine/ops/rounding.h,
  // rounded_attention.h).
  bool eight_bits = false;
  // The indices, in rising order, of the blocks that take exact inputs even if `eight_bits` is set.
  std::vector<int> exact_blocks = {};
  BlockUse blocks = BlockUse::kCompute;

  bool operator==(const ForwardPolicy& other) const = default;

  bool Rounds(int block) const {
    return eight_bits && !std::binary_search(exact_blocks.begin(), exact_blocks.end(), block);
  }
};

// Not thread-safe: one call at a time.
class VideoTransformer {
 public:
  virtual ~VideoTransformer() = default;

  virtual const TransformerConfig& config() const = 0;

  // Computes the texts' keys and values for each block. `contexts` has one [L, text_dim] per batch
  // entry: hidden states of the text encoder, floating point, on any device, without padding, with
  // 0 <= L <= text_len. PrepareText pads the hidden states with zero rows to text_len. As in
  // upstream, attention also reads the padding.
  //
  // INVALID_ARGUMENT if there are no contexts, or a shape or dtype is wrong. CANCELLED after a stop
  // request, because every block passes `gate`.
  virtual absl::StatusOr<std::shared_ptr<const TextConditioning>> PrepareText(
      std::span<const at::Tensor> contexts, const WorkGate& gate = {}) = 0;

  // Returns the flow of `latents`: fp32 [B, out_channels, F, H, W] on the model's device. `latents`
  // is fp32 [B, in_channels, F, H, W] on any device, with F, H and W multiples of patch_size. If
  // the model has an image condition, the caller must append the condition's channels to the
  // latents' channels.
  //
  // `timestep` is a CPU tensor, floating point or int64, with values in [0, 1000]: [B], or [B,
  // tokens] with the tokens in the order frame, row, column. Modulation vectors are computed once
  // per distinct timestep.
  //
  // `text` must hold B texts. INVALID_ARGUMENT if a shape, a dtype or the batch is wrong, if
  // another transformer made `text`, if `policy` reuses a contribution that was not stored, or if
  // `policy` needs exact weights that the transformer has only in 8 bits. CANCELLED after a stop
  // request: blocks pass `gate`, and so do long parts of a block.
  virtual absl::StatusOr<at::Tensor> Forward(const at::Tensor& latents, const at::Tensor& timestep,
                                             const TextConditioning& text,
                                             const WorkGate& gate = {},
                                             const ForwardPolicy& policy = {}) = 0;

  // Returns the device memory of the weights, in bytes.
  virtual int64_t WeightBytes() const = 0;

  // Makes the next Forward() mark the operators of its middle block in `marks`, which must live
  // until that call has returned. That forward is computed even if a recording of it exists; its
  // result has the same bits. Implementations that cannot mark, for example a transformer of
  // several ranks, leave `marks` empty.
  virtual void MarkBlock(BlockMarks* /*marks*/) {}

  // True lets later forwards of small videos be recorded and replayed, with the same bits. False,
  // the initial value, also frees existing recordings.
  virtual void RecordForwards(bool) {}
  // Returns the device memory that recorded forwards hold, in bytes.
  virtual int64_t RecordedBytes() const { return 0; }
};

// A transformer that can compute one forward together with other RankTransformers; each of them is
// one rank.
class RankTransformer : public VideoTransformer {
 public:
  // Makes later forwards a joint computation with other ranks, which hold the same weights and get
  // the same inputs. Each rank computes some of the tokens, and all ranks return the same flow.
  // `peers` must have no more ranks than there are tokens, and must live until the next call of
  // ShareTokens. If there are more ranks than heads, some ranks compute no self-attention. Null
  // (the initial value): this rank computes forwards alone. The gate of a joint forward must have
  // no stop token, because the ranks agree on a stop among themselves (communicator.h).
  virtual void ShareTokens(Communicator* peers) = 0;
};

}  // namespace wan
