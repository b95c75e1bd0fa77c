// The decoder of the Wan autoencoders, for one latent frame at a time. Part of vae.h.
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

// The tensors that one step of the decoder hands to the next. The tensors are on one device.
struct DecoderState {
  at::Tensor x;         // latents, then activations, at the end patches
  at::Tensor shortcut;  // added by a later step; undefined: nothing
};

class VaeDecoder {
 public:
  // `config` must be one that LoadWanVae accepts.
  VaeDecoder(VaeLayerFactory& factory, const VaeConfig& config);

  // Returns an empty cache for a pass over one video.
  FeatureCache NewCache() const { return FeatureCache(slots_); }

  // Decodes latents [z_dim, 1, h, w] to frames [3, n, h * s, w * s], contiguous and not clamped; n
  // is 1 in the first chunk and stride_temporal afterwards. The latents must be in the weights'
  // dtype and on their device, with their statistics applied. CANCELLED after a stop request,
  // because every layer passes `gate`; the cache cannot be used any more then.
  absl::StatusOr<at::Tensor> DecodeChunk(const at::Tensor& latents, FeatureCache& cache,
                                         const WorkGate& gate) const;

  // The same in parts, for devices that compute one after the other. Begin, then Run for all steps
  // in order, then End give the bits of DecodeChunk; each device has a cache for all chunks, which
  // NextChunk prepares for the next one.
  static DecoderState Begin(const at::Tensor& latents);
  absl::Status Run(size_t begin, size_t end, DecoderState& state, FeatureCache& cache,
                   const WorkGate& gate) const;
  at::Tensor End(DecoderState state) const;
  static void NextChunk(FeatureCache& cache) { cache.first_chunk = false; }

  size_t steps() const { return steps_.size(); }
  // Returns the first step of each of `parts` parts, which take about the same time. There are no
  // more parts than steps.
  std::vector<size_t> Divide(size_t parts) const;

 private:
  // One of the layers, in their order.
  struct Step {
    enum class Kind { kIn, kMiddle, kBlock, kUp, kOut };
    Kind kind = Kind::kIn;
    size_t stage = 0;  // of a block and of an enlargement
    size_t block = 0;
    double work = 0;  // of a chunk, in any unit
  };

  // Residual blocks and, except in the last stage, an Upsample; in VAE 2.2 with AddDuplicateUp3d
  // around them.
  class Stage {
   public:
    Stage(VaeLayerFactory& factory, const VaeConfig& config, size_t index);

    // Stores the addend of the enlargement in state.shortcut.
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
