// A tiny decoder (TAEHV, as TAEW2.1 and TAEW2.2), one latent frame at a time. All convolutions are
// 2D. Information passes from frame to frame only in the blocks, which also read the previous
// frame. docs/design/vae.md describes it.
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

  // Decodes a chunk as VaeDecoder::DecodeChunk does. TinyDecoderConfig::denormalises says which
  // latents it takes.
  absl::StatusOr<at::Tensor> DecodeChunk(const at::Tensor& latents, FeatureCache& cache,
                                         const WorkGate& gate) const;

 private:
  // Applies three convolutions to a frame and the previous frame, and adds the result to the frame.
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

  // A stage: runs its blocks, multiplies the frames by `growth`, then doubles rows and columns.
  struct Stage {
    std::vector<Block> blocks;
    Convolution grow;  // 1x1; multiplies the channels by `growth`
    Convolution out;   // changes the channels to the next stage's width
    int64_t growth = 1;
  };

  const TinyDecoderConfig config_;
  Convolution in_;
  std::vector<Stage> stages_;
  std::optional<Convolution> out_;
  size_t slots_ = 0;
};

}  // namespace wan
