// The decoder of the Wan2.2 autoencoder, one latent frame at a time. vae_22.h is the whole.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/model_config.h"
#include "engine/models/wan/vae_layers.h"

namespace wan {

class Vae22Decoder {
 public:
  // `config` must be one that LoadVae22 accepts.
  Vae22Decoder(VaeLayerFactory& factory, const VaeConfig& config);

  // For a pass over one video.
  FeatureCache NewCache() const { return FeatureCache(slots_); }

  // latents [z_dim, 1, h, w] in the weights' dtype and on their device, after the statistics of the
  // latents -> frames [3, n, h * s, w * s], not clamped, contiguous; n = 1 in the first chunk and
  // stride_temporal afterwards.
  at::Tensor DecodeChunk(const at::Tensor& latents, FeatureCache& cache) const;

 private:
  // Residual blocks and, but for the last stage, a step up with AddDuplicateUp3d around all of it.
  class Stage {
   public:
    // `up` is nullopt in the last stage; otherwise it says whether the frames are doubled, too.
    Stage(VaeLayerFactory& factory, const std::string& name, int64_t out, int64_t in,
          int num_blocks, std::optional<bool> up);

    at::Tensor Forward(at::Tensor x, FeatureCache& cache) const;

   private:
    int64_t time_factor_;
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
