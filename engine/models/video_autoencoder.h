// The autoencoder between pixels and the latents that the transformer denoises.
//
//   absl::StatusOr<std::unique_ptr<VideoAutoencoder>> vae = LoadWanVae(weights, config, options);
//   (*vae)->Decode(latents, [&](const at::Tensor& frames) { return writer.Add(frames); }, gate);
//
// Time is causal: a frame depends on no later one, so both directions work on chunks of frames and
// carry what the convolutions look back at. The first latent frame stands for one frame of the
// video, each later one for config().stride_temporal frames.
//
// What LibTorch throws (c10::Error, out of device memory included) passes through; the runtime
// turns it into a status.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"
#include "engine/device/work_gate.h"
#include "engine/weights/component_weights.h"

namespace wan {

struct VaeOptions {
  at::Device device = at::kCPU;
  // Of weights and activations; statistics of norms and the latents themselves are fp32 always.
  at::ScalarType dtype = at::kFloat;
  // Lets CUDA round the inputs of fp32 convolutions to TF32 (10 bits of mantissa): an eighth of the
  // time, at a relative error of about 1e-3. Without effect on a CPU and in other dtypes.
  bool allow_tf32 = false;
  // Where the weights are entered, to be moved; null: they stay on the device.
  std::shared_ptr<ComponentWeights> weights;
  // Ends the loading with CANCELLED.
  std::stop_token stop = {};
};

// Immutable after loading: one object serves concurrent calls, each with memory of its own.
class VideoAutoencoder {
 public:
  virtual ~VideoAutoencoder() = default;

  virtual const VaeConfig& config() const = 0;

  // `video` is [3, T, H, W] in [-1, 1], floating point, on any device; T = 1 + n *
  // stride_temporal, H and W multiples of stride_spatial. Gives the mean of the posterior in the
  // transformer's scale, (mean - latents_mean) / latents_std: fp32, on the model's device,
  // [z_dim, 1 + n, H / stride_spatial, W / stride_spatial].
  //
  // INVALID_ARGUMENT for another shape or dtype, CANCELLED after a stop request, for which `gate`
  // is passed before every chunk and after every layer of it.
  virtual absl::StatusOr<at::Tensor> Encode(const at::Tensor& video,
                                            const WorkGate& gate) const = 0;

  // Takes frames [3, n, H, W] in [-1, 1], fp32, contiguous, on the model's device, whose memory is
  // the callee's to keep or change.
  using FrameSink = std::function<absl::Status(const at::Tensor& frames)>;

  // `latents` is [z_dim, F, h, w] in the transformer's scale, floating point, on any device. The
  // sink gets the video in order while later latent frames wait: n = 1 frame for the first latent
  // frame, stride_temporal for each after it.
  //
  // A status of the sink that is not OK ends the decoding and is returned as it is. CANCELLED after
  // a stop request, for which `gate` is passed before every latent frame and after every layer;
  // INVALID_ARGUMENT for another shape or dtype, before the sink is called at all.
  virtual absl::Status Decode(const at::Tensor& latents, const FrameSink& sink,
                              const WorkGate& gate) const = 0;

  // Device memory of the weights.
  virtual int64_t WeightBytes() const = 0;
};

}  // namespace wan
