// The layers of the Wan autoencoders. Activations are [1, C, T, H, W] in ConvolutionLayout.
//
// A layer holds weights only, so it may serve several passes at once. The state that one chunk
// leaves for the next is in a FeatureCache; each pass over a video has its own.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/model_config.h"
#include "engine/ops/causal_conv3d.h"
#include "engine/ops/convolution.h"
#include "engine/weights/weight_loader.h"

namespace wan {

// Returns the name of a stage's layer. `list` is "encoder.downsamples" or "decoder.upsamples", and
// every stage but the last has `layers` layers. VAE 2.2 nests the lists
// ("encoder.downsamples.1.downsamples.0"); VAE 2.1 numbers the layers of all stages in one list
// ("encoder.downsamples.3").
std::string StageLayerName(const VaeConfig& config, const std::string& list, size_t stage,
                           int layers, int layer);

// The state of one pass over a video. All chunks pass through one cache, in order.
struct FeatureCache {
  // `slots` is the value of VaeLayerFactory::slots() after the last layer was made.
  explicit FeatureCache(size_t slots) : history(slots) {}

  // The first chunk is a single frame, which the layers that halve or double frames leave as it is.
  bool first_chunk = true;
  // The last frames for each convolution's slot; undefined until it has seen a frame.
  std::vector<at::Tensor> history;
};

// The source of layers' weights. Kernels of convolutions are in ConvolutionLayout.
class VaeWeights {
 public:
  virtual ~VaeWeights() = default;

  virtual at::Tensor Get(const std::string& name, at::IntArrayRef shape) = 0;
  virtual at::Tensor GetKernel(const std::string& name, at::IntArrayRef shape) = 0;
  // KernelOverEnlargement of such a kernel, made of its values in fp32. Call it only for weights
  // whose values have arrived.
  virtual at::Tensor GetEnlarged(const std::string& name) = 0;
};

// Tensors by name.
using VaeTensors = std::map<std::string, at::Tensor>;

// Weights as they are loaded; records them in `tensors`. Both must outlive the object.
class LoadedVaeWeights final : public VaeWeights {
 public:
  LoadedVaeWeights(WeightLoader& loader, VaeTensors& tensors)
      : loader_(loader), tensors_(tensors) {}

  at::Tensor Get(const std::string& name, at::IntArrayRef shape) override;
  at::Tensor GetKernel(const std::string& name, at::IntArrayRef shape) override;
  at::Tensor GetEnlarged(const std::string& name) override;

 private:
  WeightLoader& loader_;
  VaeTensors& tensors_;
};

// Weights that were loaded before, in a dtype: copies, unless they have it already. `tensors` must
// outlive the object.
class CastVaeWeights final : public VaeWeights {
 public:
  CastVaeWeights(const VaeTensors& tensors, at::ScalarType dtype)
      : tensors_(tensors), dtype_(dtype) {}

  at::Tensor Get(const std::string& name, at::IntArrayRef shape) override;
  at::Tensor GetKernel(const std::string& name, at::IntArrayRef shape) override;
  at::Tensor GetEnlarged(const std::string& name) override;

 private:
  const VaeTensors& tensors_;
  const at::ScalarType dtype_;
};

// Makes the layers of an encoder or decoder, with their weights and their slots in the cache.
class VaeLayerFactory {
 public:
  // `weights` must outlive the factory, but neither needs to outlive the layers.
  // `allow_tf32` is passed on to Convolution.
  VaeLayerFactory(VaeWeights& weights, bool allow_tf32)
      : weights_(weights), allow_tf32_(allow_tf32) {}

  VaeWeights& weights() { return weights_; }
  bool allow_tf32() const { return allow_tf32_; }

  // Loads the weights "NAME.weight" [out, in, kernel...] and "NAME.bias" [out].
  Convolution MakeConvolution(const std::string& name, int64_t out, int64_t in,
                              const std::vector<int64_t>& kernel, std::vector<int64_t> stride,
                              std::vector<int64_t> padding);
  // Makes a 1x1x1 convolution, as for ResidualBlock's shortcut and those next to the latents.
  Convolution MakePointwise3d(const std::string& name, int64_t out, int64_t in);
  CausalConv3d MakeCausalConv3d(const std::string& name, int64_t out, int64_t in,
                                const std::vector<int64_t>& kernel, int64_t time_stride);
  // 3x3x3 of an input that is normalised. In TF32 the input is fp16 if a kernel supports that: it
  // has the same significant bits, enough range after a norm, and takes half the time.
  CausalConv3d MakeConv3dOfNormed(const std::string& name, int64_t out, int64_t in);

  // The kernel of an Upsample that runs fused, made of "NAME.weight" [out, in, 3, 3], or an
  // undefined tensor if it does not.
  at::Tensor MakeEnlargedKernel(const std::string& name, const Convolution& convolution);

  size_t NewSlot() { return slots_++; }
  size_t slots() const { return slots_; }

 private:
  at::Tensor KernelOf(const std::string& name, const std::vector<int64_t>& shape);

  VaeWeights& weights_;
  const bool allow_tf32_;
  size_t slots_ = 0;
};

// A causal convolution with its slot in the cache.
class CachedConv3d {
 public:
  CachedConv3d(VaeLayerFactory& factory, const std::string& name, int64_t out, int64_t in,
               const std::vector<int64_t>& kernel, int64_t time_stride = 1);
  CachedConv3d(VaeLayerFactory& factory, CausalConv3d conv)
      : conv_(std::move(conv)), slot_(factory.NewSlot()) {}

  at::Tensor Forward(const at::Tensor& x, FeatureCache& cache) const;
  // Call CausalConv3d::SpreadFrames; only allowed if SpreadsFrames() is true.
  bool SpreadsFrames() const { return conv_.SpreadsFrames(); }
  at::Tensor SpreadFrames(const at::Tensor& x, FeatureCache& cache) const;
  // Keeps the last frames of x for the next chunk, and computes nothing.
  void Remember(const at::Tensor& x, FeatureCache& cache) const;

  // Like CausalConv3d's functions, for a caller that writes the input itself.
  CausalWindow OpenWindow(const at::Tensor& x, const FeatureCache& cache) const;
  at::Tensor Run(CausalWindow window, FeatureCache& cache, const at::Tensor& addend) const;

 private:
  CausalConv3d conv_;
  size_t slot_;
};

// An RMS norm over channels, SiLU, and a 3x3x3 causal convolution.
class NormSiluConv3d {
 public:
  NormSiluConv3d(VaeLayerFactory& factory, const std::string& norm, const std::string& conv,
                 int64_t out, int64_t in);

  // Takes x by value: if the caller moves it in, its memory is free before the convolution. Adds
  // `addend` to the result if it is defined.
  at::Tensor Forward(at::Tensor x, FeatureCache& cache, const at::Tensor& addend = {}) const;

 private:
  at::Tensor gamma_;
  CachedConv3d conv_;
};

// Two NormSiluConv3d, plus the input itself or, if the number of channels changes, its projection.
class ResidualBlock {
 public:
  ResidualBlock(VaeLayerFactory& factory, const std::string& name, int64_t out, int64_t in);

  at::Tensor Forward(const at::Tensor& x, FeatureCache& cache) const;

 private:
  NormSiluConv3d first_;
  NormSiluConv3d second_;
  std::optional<Convolution> shortcut_;
};

// Returns the floating-point operations of a block whose result is `y`, for WorkGate::Pass. It
// counts them twice, because a GPU takes about twice as long for a product in TF32 as for one in
// bf16.
double WorkOfResidualBlock(int64_t in, const at::Tensor& y);

// Self-attention with one head over the pixels of each frame, plus its input.
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
  // Whether the products' inputs are rounded to fp16, as MakeConv3dOfNormed does.
  bool rounds_;
};

// A residual block, attention, and a residual block: the innermost part of encoder and decoder.
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

  // Adds `shortcut` as AddDuplicateUp3d does, if it is defined.
  at::Tensor Forward(at::Tensor x, FeatureCache& cache, const at::Tensor& shortcut) const;

 private:
  // Runs one kernel for each of the two convolutions (fused_convolution.h). Nothing is enlarged in
  // memory: rows and columns of the second kernel that meet the same pixel are summed beforehand.
  at::Tensor ForwardFused(at::Tensor x, FeatureCache& cache, const at::Tensor& shortcut) const;
  int64_t ShortcutTimeFactor() const { return time_.has_value() ? 2 : 1; }

  std::optional<CachedConv3d> time_;
  Convolution space_;
  at::Tensor enlarged_;  // undefined: not fused
};

}  // namespace wan
