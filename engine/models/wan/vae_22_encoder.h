// The encoder of the Wan2.2 autoencoder, one chunk of frames at a time. vae_22.h is the whole.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/model_config.h"
#include "engine/models/wan/vae_layers.h"

namespace wan {

class Vae22Encoder {
 public:
  // `config` must be one that LoadVae22 accepts.
  Vae22Encoder(VaeLayerFactory& factory, const VaeConfig& config);

  // For a pass over one video.
  FeatureCache NewCache() const { return FeatureCache(slots_); }

  // frames [3, n, H, W] in any floating-point dtype, on the device of the weights, n = 1 in the
  // first chunk and stride_temporal afterwards -> the posterior's mean [z_dim, 1, H / s, W / s],
  // before the statistics of the latents.
  at::Tensor EncodeChunk(const at::Tensor& frames, FeatureCache& cache) const;

 private:
  // Residual blocks and, but for the last stage, a step down; AverageDown3d around all of it.
  class Stage {
   public:
    // `down` is nullopt in the last stage; otherwise it says whether the frames are halved, too.
    Stage(VaeLayerFactory& factory, const std::string& name, int64_t out, int64_t in,
          int num_blocks, std::optional<bool> down);

    at::Tensor Forward(const at::Tensor& x, FeatureCache& cache) const;

   private:
    int64_t out_channels_;
    int64_t time_factor_;
    int64_t space_factor_;
    std::vector<ResidualBlock> blocks_;
    std::optional<Downsample> down_;
  };

  static std::vector<Stage> MakeStages(VaeLayerFactory& factory, const VaeConfig& config);

  int64_t patch_size_;
  CachedConv3d conv_in_;
  std::vector<Stage> stages_;
  MiddleBlock middle_;
  NormSiluConv3d head_;
  Convolution moments_;  // its first half: the mean
  size_t slots_;
};

}  // namespace wan
