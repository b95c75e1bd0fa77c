// The encoder of the Wan autoencoders, one chunk of frames at a time. The encoder implements a half
// of vae.h.
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

class VaeEncoder {
 public:
  // `config` must be one that LoadWanVae accepts.
  VaeEncoder(VaeLayerFactory& factory, const VaeConfig& config);

  // Returns an empty cache for a pass over one video.
  FeatureCache NewCache() const { return FeatureCache(slots_); }

  // Encodes frames [3, n, H, W] to the posterior's mean [z_dim, 1, H / s, W / s], to which the
  // latent statistics are not yet applied. n is 1 in the first chunk and stride_temporal in later
  // ones. The frames may have any floating-point dtype and must be on the weights' device.
  // CANCELLED after a stop request, because every layer passes `gate`; the cache is unusable then.
  absl::StatusOr<at::Tensor> EncodeChunk(const at::Tensor& frames, FeatureCache& cache,
                                         const WorkGate& gate) const;

 private:
  // A stage: residual blocks and, except in the last stage, a Downsample. In VAE 2.2, AverageDown3d
  // is a shortcut around all of them.
  class Stage {
   public:
    Stage(VaeLayerFactory& factory, const VaeConfig& config, size_t index);

    absl::StatusOr<at::Tensor> Forward(const at::Tensor& x, FeatureCache& cache,
                                       const WorkGate& gate) const;

   private:
    bool averages_;
    int64_t out_channels_;
    int64_t time_factor_ = 1;
    int64_t space_factor_ = 1;
    std::vector<ResidualBlock> blocks_;
    std::optional<Downsample> down_;
  };

  static std::vector<Stage> MakeStages(VaeLayerFactory& factory, const VaeConfig& config);

  int64_t patch_size_;
  CachedConv3d conv_in_;
  std::vector<Stage> stages_;
  MiddleBlock middle_;
  NormSiluConv3d head_;
  Convolution moments_;  // the first half of its output channels is the mean
  size_t slots_;
};

}  // namespace wan
