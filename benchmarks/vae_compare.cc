#include "benchmarks/vae_compare.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace wan {
namespace {

// Draws a disc and a square that move in straight lines over a plain background. Returns [3, T, H,
// W] in [-1, 1].
at::Tensor DrawClip(int seed, const ComparedVideos& videos, at::Device device) {
  std::mt19937 generator(static_cast<unsigned>(seed));
  std::uniform_real_distribution<double> uniform(0, 1);
  const auto options = at::TensorOptions(device).dtype(at::kFloat);
  const auto color = [&] {
    std::vector<double> rgb = {uniform(generator), uniform(generator), uniform(generator)};
    return at::tensor(rgb, at::kDouble).to(device, at::kFloat).mul_(2).sub_(1).view({3, 1, 1, 1});
  };
  const auto height = static_cast<double>(videos.shape.height);
  const auto width = static_cast<double>(videos.shape.width);
  const at::Tensor t = at::arange(videos.shape.frames, options).view({1, -1, 1, 1});
  const at::Tensor y = at::arange(videos.shape.height, options).view({1, 1, -1, 1});
  const at::Tensor x = at::arange(videos.shape.width, options).view({1, 1, 1, -1});
  at::Tensor clip =
      color().expand({3, videos.shape.frames, videos.shape.height, videos.shape.width});
  for (const bool is_disc : {true, false}) {
    const double radius = (0.08 + 0.15 * uniform(generator)) * std::min(height, width);
    const auto way = [&](const at::Tensor& place, double side) {
      const double begin = uniform(generator) * side;
      const double end = uniform(generator) * side;
      return (place - (begin + t * ((end - begin) / static_cast<double>(videos.shape.frames))))
          .abs();
    };
    const at::Tensor dy = way(y, height);
    const at::Tensor dx = way(x, width);
    const at::Tensor distance = is_disc ? (dy * dy + dx * dx).sqrt() : at::maximum(dy, dx);
    // The edge is blended over a width of one pixel.
    const at::Tensor inside = (radius + 0.5 - distance).clamp_(0, 1);
    clip = clip * (1 - inside) + color() * inside;
  }
  return clip;
}

absl::StatusOr<at::Tensor> DecodeAll(const VideoAutoencoder& vae, const at::Tensor& latents,
                                     VaePrecision precision) {
  std::vector<at::Tensor> parts;
  const absl::Status status = vae.Decode(
      latents,
      [&](const at::Tensor& frames) {
        parts.push_back(frames);
        return absl::OkStatus();
      },
      VaePass({}, precision));
  if (!status.ok()) return status;
  return at::cat(parts, /*dim=*/1);
}

// The errors of one precision over all clips.
struct Errors {
  double psnr = 0;  // mean over all clips
  double worst_psnr = std::numeric_limits<double>::infinity();
  double largest = 0;
  double latents = 0;  // mean of the relative errors
};

}  // namespace

absl::Status ComparePrecisions(const VideoAutoencoder& vae, const ComparedVideos& videos,
                               Session& session) {
  const at::Device device = session.device();
  const VaeConfig& config = vae.config();
  const int count = std::max(videos.clips, 1);
  std::vector<Errors> errors(kVaePrecisions.size());
  for (int i = 0; i < count; ++i) {
    at::Tensor clip;
    at::Tensor latents;
    if (videos.clips > 0) {
      clip = DrawClip(i, videos, device);
      absl::StatusOr<at::Tensor> encoded = vae.Encode(clip, VaePass({}, VaePrecision::kFp32));
      if (!encoded.ok()) return encoded.status();
      latents = *std::move(encoded);
    } else {
      latents = at::randn(
          {config.z_dim, (videos.shape.frames - 1) / config.stride_temporal + 1,
           videos.shape.height / config.stride_spatial, videos.shape.width / config.stride_spatial},
          at::TensorOptions(device).dtype(at::kFloat));
    }
    const absl::StatusOr<at::Tensor> exact = DecodeAll(vae, latents, VaePrecision::kFp32);
    if (!exact.ok()) return exact.status();
    for (size_t p = 0; p < kVaePrecisions.size(); ++p) {
      const absl::StatusOr<at::Tensor> frames = DecodeAll(vae, latents, kVaePrecisions[p]);
      if (!frames.ok()) return frames.status();
      const at::Tensor difference = frames->sub(*exact).abs_();
      const double psnr = 10 * std::log10(4 / difference.square().mean(at::kDouble).item<double>());
      errors[p].psnr += psnr / count;
      errors[p].worst_psnr = std::min(errors[p].worst_psnr, psnr);
      errors[p].largest = std::max(errors[p].largest, difference.max().item<double>());
      if (!clip.defined()) continue;
      const absl::StatusOr<at::Tensor> encoded = vae.Encode(clip, VaePass({}, kVaePrecisions[p]));
      if (!encoded.ok()) return encoded.status();
      errors[p].latents +=
          (at::linalg_vector_norm(*encoded - latents, 2) / at::linalg_vector_norm(latents, 2))
              .item<double>() /
          count;
    }
  }
  const std::string of = absl::StrCat(count, videos.clips > 0 ? " clips, " : " of random latents, ",
                                      videos.shape.Name(), ", against fp32: ");
  for (size_t p = 0; p < kVaePrecisions.size(); ++p) {
    BenchRow row{.name = absl::StrCat(of, std::string(NameOf(kVaePrecisions[p])))};
    row.figures = {{"mean_psnr_db", errors[p].psnr},
                   {"worst_psnr_db", errors[p].worst_psnr},
                   {"largest_difference", errors[p].largest}};
    if (videos.clips > 0) row.figures.push_back({"latents_error", errors[p].latents});
    if (absl::Status status = session.Add(std::move(row)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace wan
