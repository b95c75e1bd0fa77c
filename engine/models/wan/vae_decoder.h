// The decoder of the Wan autoencoders, one latent frame at a time. The decoder implements a half of
// vae.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"
#include "engine/models/wan/vae_layers.h"

namespace wan {

// The tensors that one step of the decoder passes to the next step, on one device.
struct DecoderState {
  at::Tensor x;         // first latents, then activations, finally pixel patches
  at::Tensor shortcut;  // the input of a shortcut, which a later step adds; may be undefined
};

class VaeDecoder {
 public:
  // `config` must be one that LoadWanVae accepts.
  VaeDecoder(VaeLayerFactory& factory, const VaeConfig& config);

  // Returns an empty cache for a pass over one video.
  FeatureCache NewCache() const { return FeatureCache(slots_); }

  // Decodes latents [z_dim, 1, h, w] to frames [3, n, h * s, w * s], contiguous and not clamped; n
  // is 1 in the first chunk and stride_temporal in later ones. The latents must have the weights'
  // dtype and device, and must be unscaled already (latents * std + mean). CANCELLED after a stop
  // request, because every layer passes `gate`; the cache is unusable then.
  absl::StatusOr<at::Tensor> DecodeChunk(const at::Tensor& latents, FeatureCache& cache,
                                         const WorkGate& gate) const;

  // The following functions run DecodeChunk in steps, so that several devices can form a pipeline.
  // Begin, then Run for all steps in order, then End give the same bits as DecodeChunk. Each device
  // uses one cache for all chunks; NextChunk prepares the cache for the next chunk.
  static DecoderState Begin(const at::Tensor& latents);
  absl::Status Run(size_t begin, size_t end, DecoderState& state, FeatureCache& cache,
                   const WorkGate& gate) const;
  at::Tensor End(DecoderState state) const;
  static void NextChunk(FeatureCache& cache) { cache.first_chunk = false; }

  size_t steps() const { return steps_.size(); }
  // Divides the steps into `parts` parts that take about the same time; returns the first step of
  // each. There must be at least as many steps as parts.
  std::vector<size_t> Divide(size_t parts) const;

 private:
  // One layer of the decoder.
  struct Step {
    enum class Kind { kIn, kMiddle, kBlock, kUp, kOut };
    Kind kind = Kind::kIn;
    size_t stage = 0;  // the stage of a kBlock or kUp step
    size_t block = 0;
    double work = 0;  // time per chunk, in any unit
  };

  // A stage: residual blocks and, except in the last stage, an Upsample. In VAE 2.2,
  // AddDuplicateUp3d is a shortcut around all of them.
  class Stage {
   public:
    Stage(VaeLayerFactory& factory, const VaeConfig& config, size_t index);

    // Block 0 stores the stage's input in state.shortcut; the Upsample adds it.
    absl::Status RunBlock(size_t index, DecoderState& state, FeatureCache& cache,
                          const WorkGate& gate) const;
    void RunUp(DecoderState& state, FeatureCache& cache) const;
    size_t blocks() const { return blocks_.size(); }
    bool enlarges() const { return up_.has_value(); }

   private:
    bool has_shortcut_ = false;
    std::vector<ResidualBlock> blocks_;
    std::optional<Upsample> up_;
  };

  static std::vector<Stage> MakeStages(VaeLayerFactory& factory, const VaeConfig& config);
  static std::vector<Step> MakeSteps(const std::vector<Stage>& stages, const VaeConfig& config);

  int64_t patch_size_;
  Convolution from_latents_;
  CachedConv3d conv_in_;
  MiddleBlock middle_;
  std::vector<Stage> stages_;
  NormSiluConv3d head_;
  size_t slots_;
  std::vector<Step> steps_;
};

}  // namespace wan
