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
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace wan {
namespace {

// A disc and a square on a plain background, each on a straight way: [3, T, H, W] in [-1, 1].
at::Tensor DrawClip(int seed, const ComparedVideos& videos, at::Device device) {
  std::mt19937 generator(static_cast<unsigned>(seed));
  std::uniform_real_distribution<double> uniform(0, 1);
  const auto options = at::TensorOptions(device).dtype(at::kFloat);
  const auto color = [&] {
    std::vector<double> rgb = {uniform(generator), uniform(generator), uniform(generator)};
    return at::tensor(rgb, at::kDouble).to(device, at::kFloat).mul_(2).sub_(1).view({3, 1, 1, 1});
  };
  const auto height = static_cast<double>(videos.size.height);
  const auto width = static_cast<double>(videos.size.width);
  const at::Tensor t = at::arange(videos.frames, options).view({1, -1, 1, 1});
  const at::Tensor y = at::arange(videos.size.height, options).view({1, 1, -1, 1});
  const at::Tensor x = at::arange(videos.size.width, options).view({1, 1, 1, -1});
  at::Tensor clip = color().expand({3, videos.frames, videos.size.height, videos.size.width});
  for (const bool is_disc : {true, false}) {
    const double radius = (0.08 + 0.15 * uniform(generator)) * std::min(height, width);
    const auto way = [&](const at::Tensor& place, double side) {
      const double begin = uniform(generator) * side;
      const double end = uniform(generator) * side;
      return (place - (begin + t * ((end - begin) / static_cast<double>(videos.frames)))).abs();
    };
    const at::Tensor dy = way(y, height);
    const at::Tensor dx = way(x, width);
    const at::Tensor distance = is_disc ? (dy * dy + dx * dx).sqrt() : at::maximum(dy, dx);
    // The edge is one pixel wide.
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

// Of a precision over all clips.
struct Errors {
  double psnr = 0;  // mean
  double worst_psnr = std::numeric_limits<double>::infinity();
  double largest = 0;
  double latents = 0;  // mean relative error
};

}  // namespace

absl::Status ComparePrecisions(const VideoAutoencoder& vae, const ComparedVideos& videos,
                               at::Device device) {
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
          {config.z_dim, (videos.frames - 1) / config.stride_temporal + 1,
           videos.size.height / config.stride_spatial, videos.size.width / config.stride_spatial},
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
  std::printf("%d of %s, %ldx%ld, %ld frames, against fp32\n", count,
              videos.clips > 0 ? "clips" : "random latents", static_cast<long>(videos.size.width),
              static_cast<long>(videos.size.height), static_cast<long>(videos.frames));
  std::printf("%-5s %10s %10s %12s %14s\n", "", "PSNR, mean", "worst", "largest", "latents");
  for (size_t p = 0; p < kVaePrecisions.size(); ++p) {
    std::printf("%-5s %7.1f dB %7.1f dB %12.1e %14.1e\n",
                std::string(NameOf(kVaePrecisions[p])).c_str(), errors[p].psnr,
                errors[p].worst_psnr, errors[p].largest, errors[p].latents);
  }
  return absl::OkStatus();
}

}  // namespace wan
