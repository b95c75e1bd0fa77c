#include "engine/pipeline/image_input.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/upsample_bicubic2d.h>
#include <ATen/ops/zeros.h>

#include "engine/media/image_resize.h"

namespace wan {
namespace {

// Returns the image as [3, h, w] in [-1, 1]. The function does what torchvision's to_tensor and
// then (x - 0.5) / 0.5 do, in upstream's order, because the order decides the last bit.
at::Tensor ToSignedUnit(const RgbImage& image) {
  // Casting const away is safe, because the view does not outlive the copy below.
  return at::from_blob(const_cast<uint8_t*>(image.pixels.data()), {image.height, image.width, 3},
                       at::kByte)
      .permute({2, 0, 1})
      .contiguous()
      .to(at::kFloat)
      .div_(255)
      .sub_(0.5)
      .div_(0.5);
}

}  // namespace

absl::StatusOr<at::Tensor> PrepareImage(const RgbImage& image, ImageRole role,
                                        const VideoShape& shape, int multiple) {
  const ImageSize size = {shape.width, shape.height};
  if (role == ImageRole::kFirstFrame) {
    absl::StatusOr<RgbImage> frame = CoverAndCrop(image, size);
    if (!frame.ok()) return frame.status();
    return ToSignedUnit(*frame).unsqueeze(1);
  }
  const bool is_upstreams = IsFloorOutputSize({image.width, image.height}, size, multiple);
  const at::Tensor pixels =
      is_upstreams ? ToSignedUnit(image) : ToSignedUnit(CropToRatio(image, size));
  return at::upsample_bicubic2d(pixels.unsqueeze(0), {shape.height, shape.width},
                                /*align_corners=*/false)
      .transpose(0, 1);
}

absl::StatusOr<EncodedImage> EncodeImage(const at::Tensor& image, ImageRole role,
                                         int64_t num_frames, const VideoAutoencoder& vae,
                                         const VaePass& pass) {
  EncodedImage encoded;
  if (role == ImageRole::kFirstFrame) {
    absl::StatusOr<at::Tensor> latents = vae.Encode(image, pass);
    if (!latents.ok()) return latents.status();
    encoded.first_frame_latents = *std::move(latents);
    return encoded;
  }
  // Keep the frames on the image's device: the VAE copies them chunk by chunk.
  const at::Tensor grey =
      at::zeros({3, num_frames - 1, image.size(2), image.size(3)}, image.options());
  absl::StatusOr<at::Tensor> latents = vae.Encode(at::cat({image, grey}, /*dim=*/1), pass);
  if (!latents.ok()) return latents.status();
  // The mask has one channel for each video frame of a latent frame; the first latent frame holds
  // only the image.
  at::Tensor mask = at::zeros(
      {vae.config().stride_temporal, latents->size(1), latents->size(2), latents->size(3)},
      latents->options());
  mask.select(1, 0).fill_(1);
  encoded.condition = at::cat({mask, *latents});
  return encoded;
}

}  // namespace wan
