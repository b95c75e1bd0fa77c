// A tiny decoder (TAEHV, as TAEW2.1 and TAEW2.2), one latent frame at a time. Its convolutions are
// 2D; what is between frames passes through its blocks, which also read the frame before.
// docs/design/vae.md describes it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"
#include "engine/device/work_gate.h"
#include "engine/models/wan/vae_layers.h"
#include "engine/ops/convolution.h"

namespace wan {

class TinyDecoder {
 public:
  // `config` must have a tiny decoder.
  TinyDecoder(VaeLayerFactory& factory, const VaeConfig& config);

  // Returns an empty cache for a pass over one video.
  FeatureCache NewCache() const { return FeatureCache(slots_); }

  // As VaeDecoder::DecodeChunk, but takes latents with the statistics that
  // TinyDecoderConfig::denormalises says.
  absl::StatusOr<at::Tensor> DecodeChunk(const at::Tensor& latents, FeatureCache& cache,
                                         const WorkGate& gate) const;

 private:
  // Three convolutions over a frame and the one before it; adds their result to the frame.
  // Activations are [frames, channels, h, w].
  class Block {
   public:
    Block(VaeLayerFactory& factory, const std::string& name, int64_t width);

    // The cache gets the last frame of x for the next chunk.
    at::Tensor Forward(const at::Tensor& x, FeatureCache& cache) const;

   private:
    Convolution first_;
    Convolution second_;
    Convolution third_;
    size_t slot_;
  };

  // Blocks, then more frames, then twice as many rows and columns.
  struct Stage {
    std::vector<Block> blocks;
    Convolution grow;  // 1x1, to as many times the channels as there are frames for each
    Convolution out;   // to the next stage's width
    int64_t growth = 1;
  };

  const TinyDecoderConfig config_;
  Convolution in_;
  std::vector<Stage> stages_;
  std::optional<Convolution> out_;
  size_t slots_ = 0;
};

}  // namespace wan
