// Tiny decoders, compared with tensors of tests/golden/make_tiny_decoder.py.
#include "engine/models/wan/tiny_decoder.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "engine/models/wan/vae.h"
#include "tests/engine/golden_tensors.h"

namespace wan {
namespace {

namespace fs = std::filesystem;

constexpr double kTolerance = 1e-5;

struct Decoded {
  at::Tensor video;
  std::vector<int64_t> chunks;  // how many frames the sink got at a time
};

Decoded DecodeAll(const VideoAutoencoder& vae, const at::Tensor& latents, Decoder decoder,
                  VaePrecision precision = VaePrecision::kFp32) {
  VaePass pass({}, precision);
  pass.decoder = decoder;
  std::vector<at::Tensor> parts;
  Decoded decoded;
  const absl::Status status = vae.Decode(
      latents,
      [&](const at::Tensor& frames) {
        EXPECT_TRUE(frames.is_contiguous());
        parts.push_back(frames);
        decoded.chunks.push_back(frames.size(1));
        return absl::OkStatus();
      },
      pass);
  EXPECT_TRUE(status.ok()) << status;
  decoded.video = at::cat(parts, /*dim=*/1);
  return decoded;
}

// The name of the golden file, and of the golden checkpoint that it fits.
struct Case {
  std::string name;
  std::string base;
};

class TinyDecoderTest : public testing::TestWithParam<Case> {
 protected:
  static std::string File() { return GoldenDir() + "/tiny/" + GetParam().name + ".safetensors"; }
  static std::string Base() { return CheckpointDir() + "/" + GetParam().base + "/original"; }

  static std::unique_ptr<Checkpoint> Open(const std::string& file) {
    return Checkpoint::Open("path=" + Base() + (file.empty() ? "" : ",tiny_decoder=" + file))
        .value();
  }
  static std::unique_ptr<VideoAutoencoder> Load(const Checkpoint& checkpoint) {
    return LoadWanVae(checkpoint.vae(), checkpoint.vae_config(), {}).value();
  }
  static at::Tensor Golden(const std::string& tensor) {
    return LoadGolden("tiny/decoded.safetensors", GetParam().name + "." + tensor);
  }
};

TEST_P(TinyDecoderTest, GivesTheFramesOfTheReference) {
  const auto checkpoint = Open(File());
  const auto vae = Load(*checkpoint);
  const Decoded decoded = DecodeAll(*vae, Golden("latents"), Decoder::kTiny);
  EXPECT_LE(RelativeError(decoded.video, Golden("video")), kTolerance);
  std::vector<int64_t> chunks(static_cast<size_t>(Golden("latents").size(1)), 4);
  chunks.front() = 1;
  EXPECT_EQ(decoded.chunks, chunks);
  // A CPU computes in 16 bits only if it is asked for bf16.
  const Decoded rounded = DecodeAll(*vae, Golden("latents"), Decoder::kTiny, VaePrecision::kBf16);
  EXPECT_LE(RelativeError(rounded.video, Golden("video")), 3e-2);
  EXPECT_FALSE(at::equal(rounded.video, decoded.video));
}

// LightX2V's files take the latents with the autoencoder's mean and deviation.
TEST_P(TinyDecoderTest, TheNameOfTheFileSaysWhichLatentsItTakes) {
  const fs::path light =
      fs::path(testing::TempDir()) / ("light" + GetParam().name + ".safetensors");
  fs::copy_file(File(), light, fs::copy_options::overwrite_existing);
  const auto checkpoint = Open(light.string());
  EXPECT_TRUE(checkpoint->vae_config().tiny_decoder->denormalises);
  const auto column = [](const std::vector<double>& values) {
    return at::tensor(values, at::kFloat).view({-1, 1, 1, 1});
  };
  const at::Tensor mean = column(checkpoint->vae_config().latents_mean);
  const at::Tensor std = column(checkpoint->vae_config().latents_std);
  const at::Tensor normalised = (Golden("latents") - mean) / std;
  const Decoded decoded = DecodeAll(*Load(*checkpoint), normalised, Decoder::kTiny);
  EXPECT_LE(RelativeError(decoded.video, Golden("video")), kTolerance);
}

TEST_P(TinyDecoderTest, TheFullDecoderStaysAsItWas) {
  const auto with = Load(*Open(File()));
  const auto without = Load(*Open(""));
  EXPECT_GT(with->WeightBytes(), without->WeightBytes());
  EXPECT_TRUE(at::equal(DecodeAll(*with, Golden("latents"), Decoder::kFull).video,
                        DecodeAll(*without, Golden("latents"), Decoder::kFull).video));
  VaePass pass;
  pass.decoder = Decoder::kTiny;
  const absl::Status status = without->Decode(
      Golden("latents"), [](const at::Tensor&) { return absl::OkStatus(); }, pass);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(TinyDecoderTest, StopsBetweenChunks) {
  const auto checkpoint = Open(File());
  std::stop_source stop;
  VaePass pass(stop.get_token());
  pass.decoder = Decoder::kTiny;
  int chunks = 0;
  const absl::Status status = Load(*checkpoint)
                                  ->Decode(
                                      Golden("latents"),
                                      [&](const at::Tensor&) {
                                        ++chunks;
                                        stop.request_stop();
                                        return absl::OkStatus();
                                      },
                                      pass);
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(chunks, 1);
}

INSTANTIATE_TEST_SUITE_P(Published, TinyDecoderTest,
                         testing::Values(Case{"taew2_1", "t2v-a14b"}, Case{"taew2_2", "ti2v-5b"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wan
