// The autoencoder between pixels and the latents that the transformer denoises.
//
//   absl::StatusOr<std::unique_ptr<VideoAutoencoder>> vae = LoadWanVae(weights, config, options);
//   (*vae)->Decode(latents, [&](const at::Tensor& frames) { return writer.Add(frames); },
//                  {gate, VaePrecision::kFp16});
//
// Time is causal: a frame depends only on itself and earlier frames. So encoding and decoding work
// on chunks of frames, and keep the last frames of a chunk for the convolutions of the next chunk.
// The first latent frame stands for one video frame, each later latent frame for
// config().stride_temporal video frames.
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
#include "engine/api/decoder.h"
#include "engine/api/exchange_meter.h"
#include "engine/api/vae_precision.h"
#include "engine/checkpoint/model_config.h"
#include "engine/device/work_gate.h"
#include "engine/weights/component_weights.h"

namespace wan {

struct VaeOptions {
  at::Device device = at::kCPU;
  // Receives ownership of the weights, so that their memory can be moved between host and device;
  // null: the weights stay on the device.
  std::shared_ptr<ComponentWeights> weights;
  // A stop request ends the loading with CANCELLED.
  std::stop_token stop = {};
  // Counts exchanges with devices that decode together with `device`; null: nobody counts them.
  std::shared_ptr<ExchangeMeter> exchanges = nullptr;
};

// Options of one encoding or decoding.
struct VaePass {
  VaePass() = default;
  // The constructors are implicit, because most calls pass only a gate or a stop token.
  VaePass(WorkGate gate,  // NOLINT(google-explicit-constructor)
          VaePrecision precision = VaePrecision::kFp32)
      : gate(std::move(gate)), precision(precision) {}
  VaePass(std::stop_token stop)  // NOLINT(google-explicit-constructor)
      : gate(std::move(stop)) {}

  WorkGate gate;
  // On a CPU kTf32 and kFp16 mean kFp32. The model's weights, the statistics of norms and the
  // latents are always fp32; decoding in 16 bits makes 16-bit copies of the weights that it uses.
  VaePrecision precision = VaePrecision::kFp32;
  // The network that decodes; encoding ignores it.
  Decoder decoder = Decoder::kFull;
  // If set, Decode calls it when values exceeded the range of precision `from`; decoding then goes
  // on in precision `to`.
  std::function<void(VaePrecision from, VaePrecision to)> on_fallback = {};
};

// Thread-safe: the object is immutable after loading, and each call allocates its own memory.
class VideoAutoencoder {
 public:
  virtual ~VideoAutoencoder() = default;

  virtual const VaeConfig& config() const = 0;

  // Returns the posterior's mean, scaled for the transformer, (mean - latents_mean) / latents_std:
  // fp32 [z_dim, 1 + n, H / stride_spatial, W / stride_spatial] on the model's device. `video` is
  // [3, T, H, W] in [-1, 1], floating point, on any device, with T = 1 + n * stride_temporal and
  // with H and W multiples of stride_spatial.
  //
  // INVALID_ARGUMENT if the shape or dtype is wrong. CANCELLED after a stop request, because every
  // chunk and every layer passes `gate`. The caller must check whether the result is finite. Encode
  // does not check, because the check would wait for the device.
  virtual absl::StatusOr<at::Tensor> Encode(const at::Tensor& video, const VaePass& pass) const = 0;

  // Receives frames [3, n, H, W] in [-1, 1], fp32, contiguous, on the model's device. The sink may
  // keep the frames or change them in place.
  using FrameSink = std::function<absl::Status(const at::Tensor& frames)>;

  // Decodes `latents` [z_dim, F, h, w]: floating point, scaled for the transformer, on any device.
  // Calls `sink` once per latent frame, in order, with one video frame for the first and
  // stride_temporal frames for each later one.
  //
  // An error of the sink ends the decoding and is returned unchanged. INVALID_ARGUMENT if the shape
  // or dtype is wrong, or if the model does not have pass.decoder; in that case the sink is not
  // called. CANCELLED after a stop request, because every latent frame and every layer passes
  // `gate`.
  //
  // In kFp16 and kTf32, a value beyond fp16's range in any layer makes frames infinite or NaN.
  // These frames and all later ones are then decoded again in kBf16 or kFp32, from the first latent
  // frame on; the sink still gets each frame once. In other precisions, frames that are infinite or
  // NaN give DATA_LOSS (IsNotFinite), perhaps after the sink got them.
  virtual absl::Status Decode(const at::Tensor& latents, const FrameSink& sink,
                              const VaePass& pass) const = 0;

  // Returns the device memory of the weights, in bytes.
  virtual int64_t WeightBytes() const = 0;
};

}  // namespace wan
