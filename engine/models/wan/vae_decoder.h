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

 private:
  // Residual blocks and, except in the last stage, an Upsample; in VAE 2.2 with AddDuplicateUp3d
  // around them.
  class Stage {
   public:
    Stage(VaeLayerFactory& factory, const VaeConfig& config, size_t index);

    absl::StatusOr<at::Tensor> Forward(at::Tensor x, FeatureCache& cache,
                                       const WorkGate& gate) const;

   private:
    bool has_shortcut_ = false;
    std::vector<ResidualBlock> blocks_;
    std::optional<Upsample> up_;
  };

  static std::vector<Stage> MakeStages(VaeLayerFactory& factory, const VaeConfig& config);

  int64_t patch_size_;
  Convolution from_latents_;
  CachedConv3d conv_in_;
  MiddleBlock middle_;
  std::vector<Stage> stages_;
  NormSiluConv3d head_;
  size_t slots_;
};

}  // namespace wan
