// The autoencoder between pixels and the latents that the transformer denoises.
//
//   absl::StatusOr<std::unique_ptr<VideoAutoencoder>> vae = LoadWanVae(weights, config, options);
//   (*vae)->Decode(latents, [&](const at::Tensor& frames) { return writer.Add(frames); },
//                  {gate, VaePrecision::kFp16});
//
// Time is causal: no frame depends on a later one. So both directions work on chunks of frames and
// keep the frames at which the convolutions look back. The first latent frame stands for one frame
// of the video, each later one for config().stride_temporal frames.
//
// Exceptions of LibTorch (c10::Error, also when device memory runs out) pass through; the runtime
// turns them into statuses.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/exchange_meter.h"
#include "engine/api/vae_precision.h"
#include "engine/checkpoint/model_config.h"
#include "engine/device/work_gate.h"
#include "engine/weights/component_weights.h"

namespace wan {

struct VaeOptions {
  at::Device device = at::kCPU;
  // Receives the weights, so that they can be moved; null: they stay on the device.
  std::shared_ptr<ComponentWeights> weights;
  // A stop request ends the loading with CANCELLED.
  std::stop_token stop = {};
  // Counts the device's exchanges with others that decode with it; null: not counted.
  std::shared_ptr<ExchangeMeter> exchanges = nullptr;
};

// Options of one pass.
struct VaePass {
  VaePass() = default;
  // Implicit, because a gate or a stop token is all that most passes need.
  VaePass(WorkGate gate,  // NOLINT(google-explicit-constructor)
          VaePrecision precision = VaePrecision::kFp32)
      : gate(std::move(gate)), precision(precision) {}
  VaePass(std::stop_token stop)  // NOLINT(google-explicit-constructor)
      : gate(std::move(stop)) {}

  WorkGate gate;
  // On a CPU kTf32 and kFp16 compute as kFp32. Weights, statistics of norms and the latents are
  // always fp32; a pass in 16 bits copies the weights that it uses.
  VaePrecision precision = VaePrecision::kFp32;
  // Called, unless it is empty, when the range of `from` did not suffice and `to` takes over.
  std::function<void(VaePrecision from, VaePrecision to)> on_fallback = {};
};

// Thread-safe: an object does not change after loading, and each call has memory of its own.
class VideoAutoencoder {
 public:
  virtual ~VideoAutoencoder() = default;

  virtual const VaeConfig& config() const = 0;

  // Returns the mean of the posterior in the transformer's scale, (mean - latents_mean) /
  // latents_std: fp32 [z_dim, 1 + n, H / stride_spatial, W / stride_spatial] on the model's device.
  // `video` is [3, T, H, W] in [-1, 1], floating point, on any device, with T = 1 + n *
  // stride_temporal and with H and W multiples of stride_spatial.
  //
  // INVALID_ARGUMENT if the shape or dtype is wrong. CANCELLED after a stop request; every chunk
  // and every layer passes `pass.gate`. Does not check that the result is finite; the caller does,
  // without waiting for the device.
  virtual absl::StatusOr<at::Tensor> Encode(const at::Tensor& video, const VaePass& pass) const = 0;

  // Receives frames [3, n, H, W] in [-1, 1], fp32, contiguous, on the model's device. The callee
  // may keep or change their memory.
  using FrameSink = std::function<absl::Status(const at::Tensor& frames)>;

  // Decodes `latents` [z_dim, F, h, w], which are in the transformer's scale, floating point, on
  // any device. Calls `sink` once for each latent frame, in order: with n = 1 frame for the first,
  // and with stride_temporal frames for each later one.
  //
  // An error of the sink ends the decoding and is returned unchanged. INVALID_ARGUMENT if the shape
  // or dtype is wrong; the sink is not called then. CANCELLED after a stop request; every latent
  // frame and every layer passes `pass.gate`.
  //
  // In kFp16 and kTf32, a value that is too large for fp16 in any layer makes the frames infinite
  // or no number. Such frames and all later ones come from a second pass in kBf16 or kFp32, which
  // starts again from the first latent frame; the sink gets each frame once. DATA_LOSS
  // (IsNotFinite) if frames of any other pass are infinite or no number; the sink may have got
  // them.
  virtual absl::Status Decode(const at::Tensor& latents, const FrameSink& sink,
                              const VaePass& pass) const = 0;

  // Returns the device memory of the weights, in bytes.
  virtual int64_t WeightBytes() const = 0;
};

}  // namespace wan
