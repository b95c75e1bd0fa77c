// From a request's image to what the denoising starts from.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/device/work_gate.h"
#include "engine/media/rgb_image.h"
#include "engine/models/video_autoencoder.h"
#include "engine/planning/model_family.h"

namespace wan {

// What an image became. One of the two is defined, as DenoiseInputs takes them.
struct EncodedImage {
  at::Tensor first_frame_latents;  // ImageRole::kFirstFrame
  // ImageRole::kCondition: [stride_temporal + z_dim, T, H, W], a mask that is 1 in the first latent
  // frame, then the latents of the image followed by grey frames (zeros in [-1, 1]).
  at::Tensor condition;
};

// The image as the VAE takes it: [3, 1, H, W], fp32, on the CPU. `shape` is the plan's, so that its
// ratio is the image's as far as sizes allow. Upstream's rule of the model:
//   kFirstFrame  covers the size with Pillow's LANCZOS on 8 bits and cuts the middle; in [-1, 1]
//   kCondition   maps to [-1, 1], then scales straight to the size, bicubic, without antialiasing;
//                values may lie beyond [-1, 1]
absl::StatusOr<at::Tensor> PrepareImage(const RgbImage& image, ImageRole role,
                                        const VideoShape& shape);

// `image` is PrepareImage's, `num_frames` the video's. Statuses as VideoAutoencoder::Encode.
absl::StatusOr<EncodedImage> EncodeImage(const at::Tensor& image, ImageRole role,
                                         int64_t num_frames, const VideoAutoencoder& vae,
                                         const WorkGate& gate);

}  // namespace wan
