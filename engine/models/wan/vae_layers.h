// The layers of the Wan autoencoders. Activations are [1, C, T, H, W] in ConvolutionLayout.
//
// Layers hold only weights, so several passes can share them. A FeatureCache holds the frames that
// one chunk leaves for the next chunk; each pass over a video has its own cache.
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

// Returns the checkpoint's name of layer `layer` in stage `stage`. `list` is "encoder.downsamples"
// or "decoder.upsamples", and every stage except the last has `layers` layers. VAE 2.2 nests the
// lists ("encoder.downsamples.1.downsamples.0"); VAE 2.1 numbers the layers of all stages
// consecutively ("encoder.downsamples.3").
std::string StageLayerName(const VaeConfig& config, const std::string& list, size_t stage,
                           int layers, int layer);

// The state of one pass over a video. All chunks pass through one cache, in order.
struct FeatureCache {
  // `slots` is VaeLayerFactory::slots() after the last layer was made.
  explicit FeatureCache(size_t slots) : history(slots) {}

  // The first chunk is a single frame; layers that halve or double the number of frames skip it.
  bool first_chunk = true;
  // The last input frames of each convolution, by slot; undefined until the convolution has seen a
  // frame.
  std::vector<at::Tensor> history;
};

// The source of the layers' weights. Convolution kernels it returns are in ConvolutionLayout.
class VaeWeights {
 public:
  virtual ~VaeWeights() = default;

  virtual at::Tensor Get(const std::string& name, at::IntArrayRef shape) = 0;
  virtual at::Tensor GetKernel(const std::string& name, at::IntArrayRef shape) = 0;
  // Returns KernelOverEnlargement (fused_convolution.h) of a kernel. The function reads the fp32
  // values, so these must have arrived on the device.
  virtual at::Tensor GetEnlarged(const std::string& name) = 0;
};

// Weights by their name in the checkpoint.
using VaeTensors = std::map<std::string, at::Tensor>;

// Loads weights and records them in `tensors`. The loader and `tensors` must outlive the object.
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

// Returns loaded weights in a given dtype. Copies only weights that have another dtype. `tensors`
// must outlive the object.
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

// Makes the layers of an encoder or decoder, with their weights and cache slots.
class VaeLayerFactory {
 public:
  // `weights` must outlive the factory, but need not outlive the layers. `allow_tf32` is passed on
  // to Convolution.
  VaeLayerFactory(VaeWeights& weights, bool allow_tf32)
      : weights_(weights), allow_tf32_(allow_tf32) {}

  VaeWeights& weights() { return weights_; }
  bool allow_tf32() const { return allow_tf32_; }

  // Loads "NAME.weight" [out, in, kernel...] and "NAME.bias" [out].
  Convolution MakeConvolution(const std::string& name, int64_t out, int64_t in,
                              const std::vector<int64_t>& kernel, std::vector<int64_t> stride,
                              std::vector<int64_t> padding);
  // Makes a convolution with stride 1 that has no bias in the checkpoint: the bias is zeros.
  Convolution MakeUnbiased(const std::string& name, int64_t out, int64_t in,
                           const std::vector<int64_t>& kernel, std::vector<int64_t> padding);
  // Makes a 1x1x1 convolution, for example for ResidualBlock's shortcut.
  Convolution MakePointwise3d(const std::string& name, int64_t out, int64_t in);
  CausalConv3d MakeCausalConv3d(const std::string& name, int64_t out, int64_t in,
                                const std::vector<int64_t>& kernel, int64_t time_stride);
  // Makes a 3x3x3 convolution of a normalised input. In TF32 the convolution's input is fp16 if a
  // kernel supports that: fp16 has as many significant bits, its range is sufficient after a norm,
  // and it takes half the time.
  CausalConv3d MakeConv3dOfNormed(const std::string& name, int64_t out, int64_t in);

  // Returns the kernel of an Upsample that runs as one fused convolution, made from "NAME.weight"
  // [out, in, 3, 3]; undefined if the device has no such kernel.
  at::Tensor MakeEnlargedKernel(const std::string& name, const Convolution& convolution);

  size_t NewSlot() { return slots_++; }
  size_t slots() const { return slots_; }

 private:
  at::Tensor KernelOf(const std::string& name, const std::vector<int64_t>& shape);

  VaeWeights& weights_;
  const bool allow_tf32_;
  size_t slots_ = 0;
};

// A causal convolution together with its slot in the cache.
class CachedConv3d {
 public:
  CachedConv3d(VaeLayerFactory& factory, const std::string& name, int64_t out, int64_t in,
               const std::vector<int64_t>& kernel, int64_t time_stride = 1);
  CachedConv3d(VaeLayerFactory& factory, CausalConv3d conv)
      : conv_(std::move(conv)), slot_(factory.NewSlot()) {}

  at::Tensor Forward(const at::Tensor& x, FeatureCache& cache) const;
  // SpreadFrames runs CausalConv3d::SpreadFrames. Call SpreadFrames only if SpreadsFrames() is
  // true.
  bool SpreadsFrames() const { return conv_.SpreadsFrames(); }
  at::Tensor SpreadFrames(const at::Tensor& x, FeatureCache& cache) const;
  // Stores the last frames of x for the next chunk, without computing the convolution.
  void Remember(const at::Tensor& x, FeatureCache& cache) const;

  // OpenWindow and Run work like CausalConv3d's functions of the same name, for callers that write
  // the window's frames themselves.
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

  // `x` is taken by value: if the caller moves it in, its memory is freed before the convolution.
  // Adds `addend` if it is defined.
  at::Tensor Forward(at::Tensor x, FeatureCache& cache, const at::Tensor& addend = {}) const;

 private:
  at::Tensor gamma_;
  CachedConv3d conv_;
};

// Two NormSiluConv3d in sequence. Adds the input to their result, or the input's projection if the
// number of channels changes.
class ResidualBlock {
 public:
  ResidualBlock(VaeLayerFactory& factory, const std::string& name, int64_t out, int64_t in);

  at::Tensor Forward(const at::Tensor& x, FeatureCache& cache) const;

 private:
  NormSiluConv3d first_;
  NormSiluConv3d second_;
  std::optional<Convolution> shortcut_;
};

// Returns the floating-point operations of a residual block whose result is `y`, for
// WorkGate::Pass. Each operation is counted twice, because products in TF32 take a GPU about twice
// as long as in bf16.
double WorkOfResidualBlock(int64_t in, const at::Tensor& y);

// Single-head self-attention over the pixels of each frame; adds its result to its input.
class FrameAttention {
 public:
  FrameAttention(VaeLayerFactory& factory, const std::string& name, int64_t channels);

  at::Tensor Forward(const at::Tensor& x) const;

 private:
  at::Tensor gamma_;
  at::Tensor qkv_weight_;  // shape [3 C, C]
  at::Tensor qkv_bias_;
  at::Tensor projection_weight_;  // shape [C, C]
  at::Tensor projection_bias_;
  // Whether the layer rounds the inputs of its products to fp16, as MakeConv3dOfNormed does.
  bool rounds_;
};

// The innermost part of the encoder and of the decoder: a residual block, attention, and a residual
// block.
class MiddleBlock {
 public:
  MiddleBlock(VaeLayerFactory& factory, const std::string& name, int64_t channels);

  at::Tensor Forward(const at::Tensor& x, FeatureCache& cache) const;

 private:
  ResidualBlock first_;
  FrameAttention attention_;
  ResidualBlock second_;
};

// Halves rows and columns and, if `temporal`, the frames. The first chunk's single frame is kept as
// it is.
class Downsample {
 public:
  Downsample(VaeLayerFactory& factory, const std::string& name, int64_t channels, bool temporal);

  at::Tensor Forward(const at::Tensor& x, FeatureCache& cache) const;

 private:
  Convolution space_;
  std::optional<CachedConv3d> time_;
};

// Doubles the frames (if `temporal`), then rows and columns. The first chunk's single frame is not
// doubled, and is not read when the second chunk's frames are doubled.
class Upsample {
 public:
  Upsample(VaeLayerFactory& factory, const std::string& name, int64_t out, int64_t in,
           bool temporal);

  // Adds `shortcut` as AddDuplicateUp3d does, if it is defined.
  at::Tensor Forward(at::Tensor x, FeatureCache& cache, const at::Tensor& shortcut) const;

 private:
  // Uses one fused kernel for each of the two convolutions (fused_convolution.h). The upsampled
  // tensor is never stored: the rows and columns of the second kernel that meet the same pixel were
  // summed when enlarged_ was made.
  at::Tensor ForwardFused(at::Tensor x, FeatureCache& cache, const at::Tensor& shortcut) const;
  int64_t ShortcutTimeFactor() const { return time_.has_value() ? 2 : 1; }

  std::optional<CachedConv3d> time_;
  Convolution space_;
  at::Tensor enlarged_;  // kernel for ForwardFused; undefined: upsample without it
};

}  // namespace wan
