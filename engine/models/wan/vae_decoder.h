// The decoder of the Wan autoencoders, one latent frame at a time. vae.h is the whole.
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

  // For a pass over one video.
  FeatureCache NewCache() const { return FeatureCache(slots_); }

  // latents [z_dim, 1, h, w] in the weights' dtype and on their device, after the statistics of the
  // latents -> frames [3, n, h * s, w * s], not clamped, contiguous; n = 1 in the first chunk and
  // stride_temporal afterwards. CANCELLED as `gate` says, which is passed after every layer; the
  // cache is of no use then.
  absl::StatusOr<at::Tensor> DecodeChunk(const at::Tensor& latents, FeatureCache& cache,
                                         const WorkGate& gate) const;

 private:
  // Residual blocks and, but for the last stage, a step up; in 2.2 AddDuplicateUp3d around all of
  // that.
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
