// Turns a request's image into inputs of the denoising loop.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/api/generation.h"
#include "engine/device/work_gate.h"
#include "engine/families/model_family.h"
#include "engine/media/rgb_image.h"
#include "engine/models/video_autoencoder.h"

namespace wan {

// An encoded image, as members of DenoiseInputs; exactly one of the two is defined.
struct EncodedImage {
  at::Tensor first_frame_latents;  // set for ImageRole::kFirstFrame
  // Set for ImageRole::kCondition: [stride_temporal + z_dim, T, H, W]. The first channels are a
  // mask that is 1 in the first latent frame. The other channels are the latents of a video that
  // begins with the image and goes on with grey frames (zeros in [-1, 1]).
  at::Tensor condition;
};

// Returns the image in the form that the VAE takes: [3, 1, H, W], fp32, on the CPU. `shape` is the
// plan's shape; its sides are multiples of `multiple`. The image is fitted by upstream's rule for
// the role:
//   kFirstFrame  covers the size with Pillow's LANCZOS on 8 bits and cuts the middle; in [-1, 1]
//   kCondition   maps to [-1, 1], then scales straight to the size, bicubic, without antialiasing;
//                values may lie beyond [-1, 1]. If upstream's rule would choose another size for
//                the image, scaling would stretch it. So the image is first cut to the ratio of the
//                given size.
absl::StatusOr<at::Tensor> PrepareImage(const RgbImage& image, ImageRole role,
                                        const VideoShape& shape, int multiple);

// Encodes an image that PrepareImage returned, for a video of `num_frames` frames. Returns the
// errors of VideoAutoencoder::Encode.
absl::StatusOr<EncodedImage> EncodeImage(const at::Tensor& image, ImageRole role,
                                         int64_t num_frames, const VideoAutoencoder& vae,
                                         const VaePass& pass);

}  // namespace wan
