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

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"
#include "engine/device/work_gate.h"
#include "engine/group/communicator.h"
#include "engine/models/block_marks.h"

namespace wan {

// The texts of one batch as a transformer uses them. Only the transformer that made it can use it.
// It holds device memory and does not depend on sizes or timesteps.
class TextConditioning {
 public:
  virtual ~TextConditioning() = default;

  // Returns the number of texts, which is the batch size of Forward().
  virtual int64_t batch() const = 0;

  // Returns the device memory that it holds, in bytes.
  virtual int64_t Bytes() const = 0;
};

// Not thread-safe: one call at a time.
class VideoTransformer {
 public:
  virtual ~VideoTransformer() = default;

  virtual const TransformerConfig& config() const = 0;

  // Computes each block's keys and values of the texts. `contexts` has one [L, text_dim] for each
  // batch entry: hidden states of the text encoder, floating point, on any device, without padding,
  // and with 0 <= L <= text_len. This call pads them with zero rows to text_len; as in upstream,
  // the padding is attended to.
  //
  // INVALID_ARGUMENT if there are no contexts, or a shape or dtype is wrong. CANCELLED after a stop
  // request; every block passes `gate`.
  virtual absl::StatusOr<std::shared_ptr<const TextConditioning>> PrepareText(
      std::span<const at::Tensor> contexts, const WorkGate& gate = {}) = 0;

  // Returns the flow of `latents`: fp32 [B, out_channels, F, H, W] on the model's device. `latents`
  // is fp32 [B, in_channels, F, H, W] on any device, with F, H and W multiples of patch_size. For a
  // model with an image condition, append its channels to those of the latents.
  //
  // `timestep` is a CPU tensor, floating point or int64, with values in [0, 1000]: [B], or [B,
  // tokens] with the tokens in the order frame, row, column. The modulation is computed once for
  // each distinct value.
  //
  // `text` must hold B texts. INVALID_ARGUMENT if a shape, a dtype or the batch is wrong, or if
  // another transformer made `text`. CANCELLED after a stop request; every part of a block that
  // takes long enough passes `gate`.
  virtual absl::StatusOr<at::Tensor> Forward(const at::Tensor& latents, const at::Tensor& timestep,
                                             const TextConditioning& text,
                                             const WorkGate& gate = {}) = 0;

  // Returns the device memory of the weights, in bytes.
  virtual int64_t WeightBytes() const = 0;

  // Lets the next Forward() mark the operators of its middle block in `marks`, which must live
  // until it has returned. That forward is computed even if it is recorded, and has the same bits.
  // A transformer that cannot do so, as one that consists of several ranks, leaves `marks` empty.
  virtual void MarkBlock(BlockMarks* /*marks*/) {}

  // Lets later forwards of small videos be recorded and replayed, with the same bits. False (the
  // initial value) also returns the memory of recorded forwards to LibTorch's allocator.
  virtual void RecordForwards(bool) {}
  // Returns the device memory that recorded forwards hold, in bytes.
  virtual int64_t RecordedBytes() const { return 0; }
};

// A transformer that can compute a forward together with others.
class RankTransformer : public VideoTransformer {
 public:
  // Lets later forwards compute together with other ranks, which hold the same weights and get the
  // same inputs: each computes a part of the tokens, and all return the same flow. `peers` must
  // have no more ranks than there are tokens, and live until another call; ranks beyond the number
  // of heads have none in the self-attention. Null (the initial value): forwards are computed
  // alone. The gate of a shared forward must not stop by itself, because the ranks agree on a stop
  // (communicator.h).
  virtual void ShareTokens(Communicator* peers) = 0;
};

}  // namespace wan
