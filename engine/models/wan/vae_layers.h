// What the Wan autoencoders are made of. Activations are [1, C, T, H, W] in ConvolutionLayout.
//
// A layer holds weights and nothing else. What a video leaves behind for its next chunk is in a
// FeatureCache, of which each pass over a video has its own.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpoint/model_config.h"
#include "engine/ops/causal_conv3d.h"
#include "engine/ops/convolution.h"
#include "engine/weights/weight_loader.h"

namespace wan {

// The name of a layer of a stage; `list` is "encoder.downsamples" or "decoder.upsamples", and every
// stage but the last has `layers` layers. 2.2 nests the lists
// ("encoder.downsamples.1.downsamples.0"), 2.1 numbers the layers of all stages in one
// ("encoder.downsamples.3").
std::string StageLayerName(const VaeConfig& config, const std::string& list, size_t stage,
                           int layers, int layer);

// The state of one pass over a video. Chunks go through in order, all of them through one cache.
struct FeatureCache {
  // `slots` is VaeLayerFactory::slots() after the last layer was made.
  explicit FeatureCache(size_t slots) : history(slots), enlargement(slots) {}

  // The first chunk is a single frame, and the layers that halve or double the frames let it pass.
  bool first_chunk = true;
  // By a convolution's slot; undefined until it has seen a frame.
  std::vector<at::Tensor> history;
  // By an enlargement's slot: its kernel as KernelOverEnlargement gives it, made when first needed.
  // It lives no longer than the pass, because weights may move between passes.
  std::vector<at::Tensor> enlargement;
};

// Gives the layers of an encoder or decoder their weights and their places in the cache.
class VaeLayerFactory {
 public:
  // `weights` must outlive the factory, the layers depend on neither.
  // `allow_tf32` is what Convolution does with it.
  VaeLayerFactory(WeightLoader& weights, bool allow_tf32)
      : weights_(weights), allow_tf32_(allow_tf32) {}

  WeightLoader& weights() { return weights_; }

  // Weights "NAME.weight" [out, in, kernel...] and "NAME.bias" [out].
  Convolution MakeConvolution(const std::string& name, int64_t out, int64_t in,
                              const std::vector<int64_t>& kernel, std::vector<int64_t> stride,
                              std::vector<int64_t> padding);
  // 1x1x1, as ResidualBlock's shortcut and the convolutions beside the latents are.
  Convolution MakePointwise3d(const std::string& name, int64_t out, int64_t in);
  CausalConv3d MakeCausalConv3d(const std::string& name, int64_t out, int64_t in,
                                const std::vector<int64_t>& kernel, int64_t time_stride);

  // Whether an Upsample with this kernel [out, in, 3, 3] runs fused.
  bool HasFusedEnlargement(const at::Tensor& kernel) const;

  size_t NewSlot() { return slots_++; }
  size_t slots() const { return slots_; }

 private:
  at::Tensor KernelOf(const std::string& name, const std::vector<int64_t>& shape);

  WeightLoader& weights_;
  const bool allow_tf32_;
  size_t slots_ = 0;
};

// A causal convolution with its place in the cache.
class CachedConv3d {
 public:
  CachedConv3d(VaeLayerFactory& factory, const std::string& name, int64_t out, int64_t in,
               const std::vector<int64_t>& kernel, int64_t time_stride = 1);

  at::Tensor Forward(const at::Tensor& x, FeatureCache& cache) const;
  // CausalConv3d::SpreadFrames, and whether it may be called.
  bool SpreadsFrames() const { return conv_.SpreadsFrames(); }
  at::Tensor SpreadFrames(const at::Tensor& x, FeatureCache& cache) const;
  // Only notes the last frames of x, for the chunk after.
  void Remember(const at::Tensor& x, FeatureCache& cache) const;

  // CausalConv3d's, for a caller that writes the input itself.
  CausalWindow OpenWindow(const at::Tensor& x, const FeatureCache& cache) const;
  at::Tensor Run(CausalWindow window, FeatureCache& cache, const at::Tensor& addend) const;

 private:
  CausalConv3d conv_;
  size_t slot_;
};

// RMS norm over channels, SiLU, 3x3x3 causal convolution.
class NormSiluConv3d {
 public:
  NormSiluConv3d(VaeLayerFactory& factory, const std::string& norm, const std::string& conv,
                 int64_t out, int64_t in);

  // Takes x by value: a caller that moves it in has its memory back before the convolution. Adds
  // `addend` to the result if it is defined.
  at::Tensor Forward(at::Tensor x, FeatureCache& cache, const at::Tensor& addend = {}) const;

 private:
  at::Tensor gamma_;
  CachedConv3d conv_;
};

// Two of the above, and around them the input itself or, where the width changes, its projection.
class ResidualBlock {
 public:
  ResidualBlock(VaeLayerFactory& factory, const std::string& name, int64_t out, int64_t in);

  at::Tensor Forward(const at::Tensor& x, FeatureCache& cache) const;

 private:
  NormSiluConv3d first_;
  NormSiluConv3d second_;
  std::optional<Convolution> shortcut_;
};

// Floating-point operations of a block whose result is `y`, for WorkGate::Pass. They are counted
// twice, since a GPU takes about twice as long for a product in TF32 as for one in bf16.
double WorkOfResidualBlock(int64_t in, const at::Tensor& y);

// Self-attention with one head among the pixels of each frame, with its residual.
class FrameAttention {
 public:
  FrameAttention(VaeLayerFactory& factory, const std::string& name, int64_t channels);

  at::Tensor Forward(const at::Tensor& x) const;

 private:
  at::Tensor gamma_;
  at::Tensor qkv_weight_;  // [3 C, C]
  at::Tensor qkv_bias_;
  at::Tensor projection_weight_;  // [C, C]
  at::Tensor projection_bias_;
};

// Residual block, attention, residual block: the innermost part of encoder and decoder.
class MiddleBlock {
 public:
  MiddleBlock(VaeLayerFactory& factory, const std::string& name, int64_t channels);

  at::Tensor Forward(const at::Tensor& x, FeatureCache& cache) const;

 private:
  ResidualBlock first_;
  FrameAttention attention_;
  ResidualBlock second_;
};

// Halves rows and columns, then (if `temporal`) the frames. The first chunk's frame stays one.
class Downsample {
 public:
  Downsample(VaeLayerFactory& factory, const std::string& name, int64_t channels, bool temporal);

  at::Tensor Forward(const at::Tensor& x, FeatureCache& cache) const;

 private:
  Convolution space_;
  std::optional<CachedConv3d> time_;
};

// Doubles the frames (if `temporal`), then rows and columns. The first chunk's frame stays one, and
// the doubling of the second chunk does not look back at it.
class Upsample {
 public:
  Upsample(VaeLayerFactory& factory, const std::string& name, int64_t out, int64_t in,
           bool temporal);

  // `shortcut`, if it is defined, is added as AddDuplicateUp3d does it.
  at::Tensor Forward(at::Tensor x, FeatureCache& cache, const at::Tensor& shortcut) const;

 private:
  // In one kernel for each of the two convolutions (fused_convolution.h): nothing is enlarged in
  // memory, and rows and columns of the second kernel that meet the same pixel are added up before.
  at::Tensor ForwardFused(at::Tensor x, FeatureCache& cache, const at::Tensor& shortcut) const;
  int64_t ShortcutTimeFactor() const { return time_.has_value() ? 2 : 1; }

  std::optional<CachedConv3d> time_;
  Convolution space_;
  size_t slot_;
  bool fused_;
};

}  // namespace wan
