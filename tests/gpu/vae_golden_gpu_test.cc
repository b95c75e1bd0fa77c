// The golden cases of the autoencoder on a GPU, in each precision it runs in. Prints the errors.
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "engine/models/wan/vae.h"
#include "tests/engine/golden_dit.h"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/in_memory_weights.h"

namespace wan {
namespace {

struct Precision {
  const char* name;
  VaePrecision precision;
  double tolerance;
};

// TF32 and fp16 round the inputs of products to 10 bits of mantissa, bf16 to 7.
constexpr Precision kPrecisions[] = {{"fp32", VaePrecision::kFp32, 2e-5},
                                     {"tf32", VaePrecision::kTf32, 5e-3},
                                     {"fp16", VaePrecision::kFp16, 5e-3},
                                     {"bf16", VaePrecision::kBf16, 5e-2}};

std::unique_ptr<VideoAutoencoder> LoadGoldenVae() {
  const Checkpoint& checkpoint = GoldenCheckpoint("ti2v-5b/original");
  return LoadWanVae(checkpoint.vae(), checkpoint.vae_config(), {.device = at::Device(at::kCUDA, 0)})
      .value();
}

at::Tensor Decode(const VideoAutoencoder& vae, const at::Tensor& latents,
                  VaePrecision precision = VaePrecision::kFp32) {
  std::vector<at::Tensor> parts;
  const absl::Status status = vae.Decode(
      latents,
      [&](const at::Tensor& frames) {
        EXPECT_TRUE(frames.is_cuda());
        parts.push_back(frames);
        return absl::OkStatus();
      },
      VaePass({}, precision));
  EXPECT_TRUE(status.ok()) << status;
  return at::cat(parts, /*dim=*/1);
}

void ExpectClose(const at::Tensor& actual, const at::Tensor& expected, const Precision& precision,
                 const std::string& file) {
  const double error = RelativeError(actual, expected);
  std::printf("golden: %s in %s, relative error %.1e, allowed %.1e\n", file.c_str(), precision.name,
              error, precision.tolerance);
  EXPECT_LE(error, precision.tolerance) << precision.name << " " << file;
}

TEST(VaeGpuTest, EncodeIsCloseToTheReference) {
  const std::unique_ptr<VideoAutoencoder> vae = LoadGoldenVae();
  for (const Precision& precision : kPrecisions) {
    for (const char* const frames : {"1", "5", "9"}) {
      const std::string file = std::string("vae/2.2_encode_") + frames + ".safetensors";
      const at::Tensor latents =
          vae->Encode(LoadGolden(file, "video"), {{}, precision.precision}).value();
      EXPECT_TRUE(latents.is_cuda());
      ExpectClose(latents, LoadGolden(file, "latents"), precision, file);
    }
  }
}

TEST(VaeGpuTest, DecodeIsCloseToTheReference) {
  const std::unique_ptr<VideoAutoencoder> vae = LoadGoldenVae();
  for (const Precision& precision : kPrecisions) {
    for (const char* const latent_frames : {"1", "2", "3"}) {
      const std::string file = std::string("vae/2.2_decode_") + latent_frames + ".safetensors";
      ExpectClose(Decode(*vae, LoadGolden(file, "latents"), precision.precision),
                  LoadGolden(file, "video"), precision, file);
    }
  }
}

TEST(VaeGpuTest, WhatLeavesTheRangeOfFp16IsDoneInBf16) {
  const Checkpoint& checkpoint = GoldenCheckpoint("ti2v-5b/original");
  InMemoryWeights weights = InMemoryWeights::CopyOf(checkpoint.vae());
  for (const char* const name : {"decoder.conv1.bias", "encoder.conv1.bias"}) {
    TensorInfo info = *checkpoint.vae().Find(name);
    info.dtype = DType::kFloat32;
    const std::vector<float> values(static_cast<size_t>(info.shape[0]), 7e4f);
    info.bytes = values.size() * sizeof(float);
    weights.Remove(name);
    weights.Put(info, std::string(reinterpret_cast<const char*>(values.data()), info.bytes));
  }
  const auto vae =
      LoadWanVae(weights, checkpoint.vae_config(), {.device = at::Device(at::kCUDA, 0)}).value();
  const at::Tensor latents = LoadGolden("vae/2.2_decode_3.safetensors", "latents");
  const at::Tensor frames = Decode(*vae, latents, VaePrecision::kFp16);
  EXPECT_TRUE(frames.isfinite().all().item<bool>());
  EXPECT_TRUE(at::equal(frames, Decode(*vae, latents, VaePrecision::kBf16)));
  std::vector<std::pair<VaePrecision, VaePrecision>> fallbacks;
  VaePass pass({}, VaePrecision::kFp16);
  pass.on_fallback = [&](VaePrecision from, VaePrecision to) { fallbacks.emplace_back(from, to); };
  const auto ignore = [](const at::Tensor&) { return absl::OkStatus(); };
  EXPECT_TRUE(vae->Decode(latents, ignore, pass).ok());
  EXPECT_EQ(fallbacks, (std::vector{std::pair(VaePrecision::kFp16, VaePrecision::kBf16)}));
  fallbacks.clear();
  pass.precision = VaePrecision::kBf16;
  EXPECT_TRUE(vae->Decode(latents, ignore, pass).ok());
  EXPECT_TRUE(fallbacks.empty()) << "its range suffices";
  const at::Tensor video = LoadGolden("vae/2.2_encode_5.safetensors", "video");
  EXPECT_TRUE(at::equal(vae->Encode(video, VaePass({}, VaePrecision::kFp16)).value(),
                        vae->Encode(video, VaePass({}, VaePrecision::kBf16)).value()));
}

TEST(VaeGpuTest, PrefixOfTheLatentsGivesExactlyThePrefixOfTheFrames) {
  const std::unique_ptr<VideoAutoencoder> vae = LoadGoldenVae();
  const at::Tensor latents = LoadGolden("vae/2.2_decode_3.safetensors", "latents");
  const at::Tensor whole = Decode(*vae, latents);
  EXPECT_TRUE(at::equal(Decode(*vae, latents.narrow(1, 0, 2)), whole.narrow(1, 0, 5)));
}

}  // namespace
}  // namespace wan
