// The network that predicts the flow of noisy latents: one call of Forward() per solver step and
// prompt.
//
//   absl::StatusOr<std::unique_ptr<VideoTransformer>> transformer = LoadWanTransformer(...);
//   auto text = (*transformer)->PrepareText({{prompt_states, negative_states}});  // once a job
//   auto flow = (*transformer)->Forward(latents, timestep, **text);               // each step
//
// What LibTorch throws (c10::Error, out of device memory included) passes through; the runtime
// turns it into a status.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"
#include "engine/device/work_gate.h"

namespace wan {

// What a transformer keeps of the texts of one batch. Only the object that made it can use it; it
// holds device memory and does not depend on sizes or timesteps.
class TextConditioning {
 public:
  virtual ~TextConditioning() = default;

  // Texts, which is the batch that Forward() takes.
  virtual int64_t batch() const = 0;

  // Device memory it holds.
  virtual int64_t Bytes() const = 0;
};

// One call at a time.
class VideoTransformer {
 public:
  virtual ~VideoTransformer() = default;

  virtual const TransformerConfig& config() const = 0;

  // `contexts` has one [L, text_dim] per batch entry: hidden states of the text encoder, floating
  // point, on any device, 0 <= L <= text_len, without padding. They are padded with zero rows to
  // text_len here; the padding is attended to, as upstream does.
  //
  // INVALID_ARGUMENT for no contexts or another shape or dtype. CANCELLED after a stop request, for
  // which `gate` is passed after every block.
  virtual absl::StatusOr<std::shared_ptr<const TextConditioning>> PrepareText(
      std::span<const at::Tensor> contexts, const WorkGate& gate = {}) = 0;

  // The flow of `latents` [B, in_channels, F, H, W] (fp32, on any device; F, H and W are multiples
  // of patch_size): fp32 [B, out_channels, F, H, W] on the model's device. A model with an image
  // condition takes its channels appended to the latents'.
  //
  // `timestep` is a CPU tensor, floating point or int64, in [0, 1000]: [B], or [B, tokens] with
  // tokens in the order frame, row, column. Whatever its shape, the modulation is computed once for
  // each distinct value.
  //
  // `text` holds B texts. INVALID_ARGUMENT for another shape, dtype or batch, or a conditioning of
  // another model. CANCELLED after a stop request, for which `gate` is passed after every part of a
  // block that is large enough to be waited for.
  virtual absl::StatusOr<at::Tensor> Forward(const at::Tensor& latents, const at::Tensor& timestep,
                                             const TextConditioning& text,
                                             const WorkGate& gate = {}) = 0;

  // Device memory of the weights.
  virtual int64_t WeightBytes() const = 0;
};

}  // namespace wan
