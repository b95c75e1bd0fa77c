#include "engine/models/wan/vae.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/work_gate.h"
#include "engine/models/wan/vae_decoder.h"
#include "engine/models/wan/vae_pipeline.h"
#include "tests/engine/golden_dit.h"
#include "tests/engine/golden_tensors.h"
#include "tests/engine/in_memory_weights.h"

namespace wan {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr double kTolerance = 1e-5;

const Checkpoint& GoldenOf(const std::string& kind, const std::string& layout = "original") {
  return GoldenCheckpoint((kind == "2.1" ? "t2v-a14b/" : "ti2v-5b/") + layout);
}

std::unique_ptr<VideoAutoencoder> LoadGoldenVae(const std::string& kind,
                                                const std::string& layout = "original") {
  const Checkpoint& checkpoint = GoldenOf(kind, layout);
  return LoadWanVae(checkpoint.vae(), checkpoint.vae_config(), {}).value();
}

void ExpectClose(const at::Tensor& actual, const at::Tensor& expected, const std::string& what) {
  const double error = RelativeError(actual, expected);
  std::printf("golden: %s relative error %.1e\n", what.c_str(), error);
  EXPECT_LE(error, kTolerance) << what;
}

// The whole video, and how many frames the sink got at a time.
struct Decoded {
  at::Tensor video;
  std::vector<int64_t> chunks;
};

Decoded DecodeAll(const VideoAutoencoder& vae, const at::Tensor& latents,
                  const VaePass& pass = {}) {
  std::vector<at::Tensor> parts;
  Decoded decoded;
  const absl::Status status = vae.Decode(
      latents,
      [&](const at::Tensor& frames) {
        parts.push_back(frames);
        decoded.chunks.push_back(frames.size(1));
        return absl::OkStatus();
      },
      pass);
  EXPECT_TRUE(status.ok()) << status;
  decoded.video = at::cat(parts, /*dim=*/1);
  return decoded;
}

// [channels, ...] -> the values scaled and moved per channel.
at::Tensor PerChannel(const std::vector<double>& values) {
  at::Tensor result = at::zeros({static_cast<int64_t>(values.size()), 1, 1, 1}, at::kDouble);
  std::copy(values.begin(), values.end(), result.mutable_data_ptr<double>());
  return result;
}

struct GoldenCase {
  const char* kind;
  const char* layout;
  int frames;  // of the video or the latents
};

void PrintTo(const GoldenCase& golden, std::ostream* out) {
  *out << golden.kind << " " << golden.frames << " from " << golden.layout;
}

std::vector<GoldenCase> GoldenCases(std::initializer_list<int> frames) {
  std::vector<GoldenCase> cases;
  for (const char* kind : {"2.1", "2.2"}) {
    for (const char* layout : {"original", "diffusers"}) {
      for (const int count : frames) cases.push_back({kind, layout, count});
    }
  }
  return cases;
}

// The file of the case, "vae/2.1_encode_5.safetensors".
std::string FileOf(const GoldenCase& golden, const std::string& direction) {
  return std::string("vae/") + golden.kind + "_" + direction + "_" + std::to_string(golden.frames) +
         ".safetensors";
}

class GoldenEncodeTest : public testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenEncodeTest, EqualsTheReference) {
  const std::string file = FileOf(GetParam(), "encode");
  const std::string what = file + " (" + GetParam().layout + ")";
  const at::Tensor video = LoadGolden(file, "video");

  const std::unique_ptr<VideoAutoencoder> vae = LoadGoldenVae(GetParam().kind, GetParam().layout);
  const at::Tensor latents = vae->Encode(video, {}).value();
  ExpectClose(latents, LoadGolden(file, "latents"), what + " latents");
  EXPECT_EQ(latents.scalar_type(), at::kFloat);

  const at::Tensor raw = latents.to(at::kDouble)
                             .mul(PerChannel(vae->config().latents_std))
                             .add(PerChannel(vae->config().latents_mean));
  ExpectClose(raw, LoadGolden(file, "latents_raw"), what + " latents_raw");
}

INSTANTIATE_TEST_SUITE_P(Frames, GoldenEncodeTest, testing::ValuesIn(GoldenCases({1, 5, 9})));

class GoldenDecodeTest : public testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenDecodeTest, EqualsTheReference) {
  const std::string file = FileOf(GetParam(), "decode");
  const at::Tensor latents = LoadGolden(file, "latents");

  const Decoded decoded = DecodeAll(*LoadGoldenVae(GetParam().kind, GetParam().layout), latents);
  ExpectClose(decoded.video, LoadGolden(file, "video"),
              file + " (" + GetParam().layout + ") video");
  EXPECT_LE(decoded.video.abs().max().item<float>(), 1.0f);
  EXPECT_EQ(decoded.video.scalar_type(), at::kFloat);
}

TEST_P(GoldenDecodeTest, DecoderAloneEqualsTheReferenceBeforeTheClamp) {
  const std::string file = FileOf(GetParam(), "decode");
  const Checkpoint& checkpoint = GoldenOf(GetParam().kind, GetParam().layout);
  const c10::InferenceMode no_autograd;
  WeightLoader loader(checkpoint.vae(), at::kCPU, at::kFloat);
  VaeTensors tensors;
  LoadedVaeWeights weights(loader, tensors);
  VaeLayerFactory factory(weights, /*allow_tf32=*/false);
  const VaeDecoder decoder(factory, checkpoint.vae_config());
  ASSERT_TRUE(loader.status().ok()) << loader.status();

  const at::Tensor latents = LoadGolden(file, "latents_raw");
  FeatureCache cache = decoder.NewCache();
  std::vector<at::Tensor> chunks;
  const WorkGate open;
  for (int64_t i = 0; i < latents.size(1); ++i) {
    const absl::StatusOr<at::Tensor> chunk =
        decoder.DecodeChunk(latents.narrow(1, i, 1), cache, open);
    ASSERT_TRUE(chunk.ok()) << chunk.status();
    chunks.push_back(*chunk);
  }
  ExpectClose(at::cat(chunks, /*dim=*/1), LoadGolden(file, "video_unclamped"),
              file + " (" + GetParam().layout + ") video_unclamped");
}

class VaePipelineTest : public testing::Test {
 protected:
  VaePipelineTest() {
    LoadedVaeWeights weights(loader_, tensors_);
    VaeLayerFactory factory(weights, /*allow_tf32=*/false);
    decoder_.emplace(factory, GoldenOf("2.2").vae_config());
    EXPECT_TRUE(loader_.status().ok()) << loader_.status();
  }
  VaePipelineRank Rank(std::shared_ptr<ExchangeMeter> exchanges = nullptr) const {
    return {at::kCPU, [this] { return *decoder_; }, std::move(exchanges)};
  }

  const at::Tensor latents_ = LoadGolden("vae/2.2_decode_3.safetensors", "latents_raw");

 private:
  WeightLoader loader_{GoldenOf("2.2").vae(), at::kCPU, at::kFloat};
  VaeTensors tensors_;
  std::optional<VaeDecoder> decoder_;
};

TEST_F(VaePipelineTest, CountsWhatAMemberHandsOnAndItsWaiting) {
  std::vector<std::shared_ptr<ExchangeMeter>> meters;
  std::vector<VaePipelineRank> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    meters.push_back(std::make_shared<ExchangeMeter>());
    ranks.push_back(Rank(meters.back()));
  }
  std::vector<uint64_t> of_one_chunk;
  for (const int64_t chunks : {1, 3}) {
    const VaePipelineWork work{
        chunks, [&](int64_t i) { return latents_.narrow(1, i, 1); },
        [&](int64_t, const at::Tensor&) -> absl::StatusOr<bool> { return true; }};
    const absl::Status status = RunVaePipeline(ranks, work, {});
    ASSERT_TRUE(status.ok()) << status;
    if (of_one_chunk.empty()) {
      for (const auto& meter : meters) of_one_chunk.push_back(meter->Read().sent_bytes);
    }
  }
  EXPECT_EQ(of_one_chunk[0], 0u) << "the first rank has the last layers";
  EXPECT_GT(of_one_chunk[1], latents_.narrow(1, 0, 1).nbytes());
  EXPECT_GT(of_one_chunk[2], latents_.narrow(1, 0, 1).nbytes());
  EXPECT_GT(meters[1]->Read().sent_bytes, 3 * of_one_chunk[1]) << "later chunks have more frames";
  EXPECT_GT(meters[0]->Read().waited_seconds, 0);
  EXPECT_GT(meters[1]->Read().waited_seconds, 0);
  EXPECT_EQ(meters[2]->Read().waited_seconds, 0) << "it begins";
}

// Whichever rank fails, the others do not wait for it.
TEST_F(VaePipelineTest, AMemberThatFailsEndsTheDecodingOnAll) {
  for (size_t broken = 0; broken < 3; ++broken) {
    std::vector<VaePipelineRank> ranks(3, Rank());
    ranks[broken].make_decoder = []() -> VaeDecoder {
      throw std::runtime_error("no memory for its weights");
    };
    int chunks = 0;
    const VaePipelineWork work{
        3, [&](int64_t i) { return latents_.narrow(1, i, 1); },
        [&](int64_t, const at::Tensor&) -> absl::StatusOr<bool> { return ++chunks > 0; }};
    const absl::Status status = RunVaePipeline(ranks, work, {});
    EXPECT_TRUE(absl::IsInternal(status)) << broken << ": " << status;
    EXPECT_THAT(status.message(), HasSubstr("decoding on cpu: no memory for its weights"));
    EXPECT_EQ(chunks, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(LatentFrames, GoldenDecodeTest, testing::ValuesIn(GoldenCases({1, 2, 3})));

// What holds for either kind, on one device and on several.
struct KindOnDevices {
  const char* kind = "";
  size_t devices = 1;
};

void PrintTo(const KindOnDevices& value, std::ostream* out) {
  *out << value.kind << " on " << value.devices;
}

class VaeTest : public testing::TestWithParam<KindOnDevices> {
 protected:
  std::unique_ptr<VideoAutoencoder> LoadGoldenVae() const {
    std::vector<std::unique_ptr<VideoAutoencoder>> ranks;
    for (size_t i = 0; i < GetParam().devices; ++i) {
      ranks.push_back(wan::LoadGoldenVae(GetParam().kind));
    }
    return MakeGroupVae(std::move(ranks));
  }
  // A tensor of "encode_9" or the like of this kind.
  at::Tensor Golden(const std::string& which, const std::string& name) const {
    return LoadGolden(std::string("vae/") + GetParam().kind + "_" + which + ".safetensors", name);
  }
  const WeightSource& GoldenWeights() const { return GoldenOf(GetParam().kind).vae(); }
  const VaeConfig& GoldenConfig() const { return GoldenOf(GetParam().kind).vae_config(); }
};

INSTANTIATE_TEST_SUITE_P(Kind, VaeTest,
                         testing::Values(KindOnDevices{"2.1"}, KindOnDevices{"2.2"},
                                         KindOnDevices{"2.1", 2}, KindOnDevices{"2.2", 2},
                                         KindOnDevices{"2.1", 3}, KindOnDevices{"2.2", 4}));

TEST_P(VaeTest, DevicesGiveTheBitsOfOne) {
  const at::Tensor latents = Golden("decode_3", "latents");
  const Decoded alone = DecodeAll(*wan::LoadGoldenVae(GetParam().kind), latents);
  const Decoded together = DecodeAll(*LoadGoldenVae(), latents);
  EXPECT_TRUE(at::equal(together.video, alone.video));
  EXPECT_EQ(together.chunks, alone.chunks);
}

TEST_P(VaeTest, PrefixOfTheFramesGivesExactlyThePrefixOfTheLatents) {
  const std::unique_ptr<VideoAutoencoder> vae = LoadGoldenVae();
  const at::Tensor video = Golden("encode_9", "video");
  const at::Tensor whole = vae->Encode(video, {}).value();
  for (const int64_t latent_frames : {1, 2}) {
    const at::Tensor part = vae->Encode(video.narrow(1, 0, 4 * latent_frames - 3), {}).value();
    EXPECT_TRUE(at::equal(part, whole.narrow(1, 0, latent_frames))) << latent_frames;
  }
}

TEST_P(VaeTest, PrefixOfTheLatentsGivesExactlyThePrefixOfTheFrames) {
  const std::unique_ptr<VideoAutoencoder> vae = LoadGoldenVae();
  const at::Tensor latents = Golden("decode_3", "latents");
  const at::Tensor whole = DecodeAll(*vae, latents).video;
  for (const int64_t latent_frames : {1, 2}) {
    const at::Tensor part = DecodeAll(*vae, latents.narrow(1, 0, latent_frames)).video;
    EXPECT_TRUE(at::equal(part, whole.narrow(1, 0, 4 * latent_frames - 3))) << latent_frames;
  }
}

// The other half of causality: what comes later must depend on what came before.
TEST_P(VaeTest, LaterFramesRememberEarlierOnes) {
  const std::unique_ptr<VideoAutoencoder> vae = LoadGoldenVae();
  const at::Tensor latents = Golden("decode_3", "latents");
  at::Tensor changed = latents.clone();
  changed.select(1, 0).zero_();
  const at::Tensor last = DecodeAll(*vae, latents).video.narrow(1, 5, 4);
  const at::Tensor last_changed = DecodeAll(*vae, changed).video.narrow(1, 5, 4);
  EXPECT_GT(RelativeError(last_changed, last), 1e-3);
}

TEST_P(VaeTest, FramesLeaveOneLatentFrameAtATime) {
  const std::unique_ptr<VideoAutoencoder> vae = LoadGoldenVae();
  const at::Tensor latents = Golden("decode_3", "latents");
  EXPECT_THAT(DecodeAll(*vae, latents).chunks, ElementsAre(1, 4, 4));
}

TEST_P(VaeTest, StopsBetweenLatentFrames) {
  const std::unique_ptr<VideoAutoencoder> vae = LoadGoldenVae();
  std::stop_source stop;
  int chunks = 0;
  const absl::Status status = vae->Decode(
      Golden("decode_3", "latents"),
      [&](const at::Tensor&) {
        if (++chunks == 2) stop.request_stop();
        return absl::OkStatus();
      },
      stop.get_token());
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_EQ(chunks, 2);
}

TEST_P(VaeTest, EncodingLooksAtTheStopRequest) {
  std::stop_source stop;
  stop.request_stop();
  const absl::Status status =
      LoadGoldenVae()->Encode(Golden("encode_5", "video"), stop.get_token()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
}

TEST_P(VaeTest, ErrorOfTheSinkEndsTheDecodingUnchanged) {
  int chunks = 0;
  const absl::Status error = absl::ResourceExhaustedError("disk full");
  const absl::Status status = LoadGoldenVae()->Decode(
      Golden("decode_3", "latents"),
      [&](const at::Tensor&) { return ++chunks == 2 ? error : absl::OkStatus(); }, {});
  EXPECT_EQ(status, error);
  EXPECT_EQ(chunks, 2);
}

TEST_P(VaeTest, ConcurrentPassesDoNotMeet) {
  const std::unique_ptr<VideoAutoencoder> vae = LoadGoldenVae();
  const at::Tensor latents = Golden("decode_3", "latents");
  const at::Tensor expected = DecodeAll(*vae, latents).video;
  // A second pass begins while the first is between two chunks.
  std::vector<at::Tensor> parts;
  ASSERT_TRUE(vae->Decode(latents,
                          [&](const at::Tensor& frames) {
                            parts.push_back(frames);
                            EXPECT_TRUE(at::equal(DecodeAll(*vae, latents).video, expected));
                            return absl::OkStatus();
                          },
                          {})
                  .ok());
  EXPECT_TRUE(at::equal(at::cat(parts, /*dim=*/1), expected));
}

TEST_P(VaeTest, TakesInputsOfAnyFloatingPointType) {
  const std::unique_ptr<VideoAutoencoder> vae = LoadGoldenVae();
  const at::Tensor video = Golden("encode_1", "video");
  EXPECT_TRUE(
      at::equal(vae->Encode(video.to(at::kDouble), {}).value(), vae->Encode(video, {}).value()));
  const at::Tensor latents = Golden("decode_1", "latents");
  EXPECT_TRUE(
      at::equal(DecodeAll(*vae, latents.to(at::kDouble)).video, DecodeAll(*vae, latents).video));
}

TEST_P(VaeTest, RunsInBFloat16) {
  const Decoded decoded =
      DecodeAll(*LoadGoldenVae(), Golden("decode_2", "latents"), {{}, VaePrecision::kBf16});
  EXPECT_EQ(decoded.video.scalar_type(), at::kFloat);
  EXPECT_LE(RelativeError(decoded.video, Golden("decode_2", "video")), 0.05);
}

TEST_P(VaeTest, APassStatesItsPrecision) {
  const std::unique_ptr<VideoAutoencoder> vae = LoadGoldenVae();
  const at::Tensor latents = Golden("decode_2", "latents");
  const at::Tensor video = Golden("encode_5", "video");
  const VaePass in_bf16({}, VaePrecision::kBf16);
  const at::Tensor exact = DecodeAll(*vae, latents).video;
  EXPECT_FALSE(at::equal(DecodeAll(*vae, latents, in_bf16).video, exact));
  const at::Tensor exact_latents = vae->Encode(video, {}).value();
  const at::Tensor rounded_latents = vae->Encode(video, in_bf16).value();
  EXPECT_FALSE(at::equal(rounded_latents, exact_latents));
  EXPECT_LE(RelativeError(rounded_latents, exact_latents), 0.05);
  // A CPU rounds nothing to TF32 or fp16.
  for (const VaePrecision precision : {VaePrecision::kTf32, VaePrecision::kFp16}) {
    EXPECT_TRUE(at::equal(DecodeAll(*vae, latents, {{}, precision}).video, exact));
  }
}

TEST_P(VaeTest, CountsTheBytesOfItsWeights) {
  int64_t bytes = 0;
  for (const TensorInfo& info : GoldenWeights().Tensors())
    bytes += static_cast<int64_t>(info.bytes);
  // Every tensor of the checkpoint is used, and none twice on a device.
  EXPECT_EQ(LoadGoldenVae()->WeightBytes(), bytes * static_cast<int64_t>(GetParam().devices));
}

TEST_P(VaeTest, UndefinedTensorsAreInvalidArguments) {
  const std::unique_ptr<VideoAutoencoder> vae = LoadGoldenVae();
  EXPECT_EQ(vae->Encode(at::Tensor(), {}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      vae->Decode(at::Tensor(), [](const at::Tensor&) { return absl::OkStatus(); }, {}).code(),
      absl::StatusCode::kInvalidArgument);
}

struct BadShape {
  const char* name;
  std::vector<int64_t> shape;
  at::ScalarType dtype = at::kFloat;
};

void PrintTo(const BadShape& bad, std::ostream* out) { *out << bad.name; }

class BadVideoTest : public testing::TestWithParam<BadShape> {};

TEST_P(BadVideoTest, IsAnInvalidArgument) {
  const at::Tensor video = at::zeros(GetParam().shape, GetParam().dtype);
  const absl::Status status = LoadGoldenVae("2.2")->Encode(video, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("expected floating-point [3, 1 + n * 4, H, W]"));
}

INSTANTIATE_TEST_SUITE_P(
    Each, BadVideoTest,
    testing::Values(BadShape{"no frame axis", {3, 32, 32}}, BadShape{"a batch", {1, 3, 1, 32, 32}},
                    BadShape{"one color", {1, 1, 32, 32}}, BadShape{"no frames", {3, 0, 32, 32}},
                    BadShape{"four frames", {3, 4, 32, 32}}, BadShape{"height 24", {3, 1, 24, 32}},
                    BadShape{"width 40", {3, 1, 32, 40}}, BadShape{"no rows", {3, 1, 0, 32}},
                    BadShape{"integers", {3, 1, 32, 32}, at::kByte}));

class BadLatentsTest : public testing::TestWithParam<BadShape> {};

TEST_P(BadLatentsTest, IsAnInvalidArgument) {
  const at::Tensor latents = at::zeros(GetParam().shape, GetParam().dtype);
  const absl::Status status = LoadGoldenVae("2.2")->Decode(latents,
                                                           [](const at::Tensor&) {
                                                             ADD_FAILURE() << "the sink was called";
                                                             return absl::OkStatus();
                                                           },
                                                           {});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("expected floating-point [48, F, h, w]"));
}

INSTANTIATE_TEST_SUITE_P(Each, BadLatentsTest,
                         testing::Values(BadShape{"no frame axis", {48, 2, 2}},
                                         BadShape{"a batch", {1, 48, 1, 2, 2}},
                                         BadShape{"16 channels", {16, 1, 2, 2}},
                                         BadShape{"no frames", {48, 0, 2, 2}},
                                         BadShape{"no columns", {48, 1, 2, 0}},
                                         BadShape{"integers", {48, 1, 2, 2}, at::kLong}));

TEST(LoadWanVaeTest, NamesTheTensorThatIsMissing) {
  InMemoryWeights weights = InMemoryWeights::CopyOf(GoldenOf("2.2").vae());
  weights.Remove("decoder.upsamples.1.upsamples.3.time_conv.bias");
  const absl::Status status = LoadWanVae(weights, GoldenOf("2.2").vae_config(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("decoder.upsamples.1.upsamples.3.time_conv.bias"));
}

TEST(LoadWanVaeTest, NamesTheTensorOfAnotherShape) {
  InMemoryWeights weights = InMemoryWeights::CopyOf(GoldenOf("2.2").vae());
  weights.Reshape("encoder.middle.1.to_qkv.weight", {32, 96, 1, 1});
  const absl::Status status = LoadWanVae(weights, GoldenOf("2.2").vae_config(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("encoder.middle.1.to_qkv.weight"), HasSubstr("[32, 96, 1, 1]"),
                    HasSubstr("[96, 32, 1, 1]")));
}

struct BadConfig {
  const char* name;
  void (*change)(VaeConfig& config);
  const char* message;
};

void PrintTo(const BadConfig& bad, std::ostream* out) { *out << bad.name; }

class BadConfigTest : public testing::TestWithParam<BadConfig> {};

TEST_P(BadConfigTest, IsAnInvalidArgument) {
  VaeConfig config = GoldenOf("2.2").vae_config();
  GetParam().change(config);
  const absl::Status status = LoadWanVae(GoldenOf("2.2").vae(), config, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Each, BadConfigTest,
    testing::Values(
        BadConfig{"z_dim", [](VaeConfig& c) { c.z_dim = 0; }, "must be positive"},
        BadConfig{"stages", [](VaeConfig& c) { c.dim_mult.clear(); }, "must be positive"},
        BadConfig{"steps", [](VaeConfig& c) { c.temporal_downsample.pop_back(); },
                  "temporal_downsample has 2 entries"},
        BadConfig{"stride", [](VaeConfig& c) { c.stride_temporal = 8; }, "strides 8 and 16"},
        BadConfig{"multiplier", [](VaeConfig& c) { c.dim_mult[1] = -2; }, "dim_mult[1] is -2"},
        BadConfig{"average",
                  [](VaeConfig& c) {
                    c.dim_mult = {3, 2, 4, 4};
                  },
                  "stage 0 of the encoder"},
        BadConfig{"duplication",
                  [](VaeConfig& c) {
                    c.dim_mult = {1, 8, 4, 4};
                  },
                  "stage 2 of the decoder"},
        BadConfig{"statistics", [](VaeConfig& c) { c.latents_mean.pop_back(); }, "47 and 48"},
        BadConfig{"deviation", [](VaeConfig& c) { c.latents_std[3] = 0; }, "latents_std[3]"}));

TEST(LoadWanVaeTest, HalvesOnlyEvenWidthsIn21) {
  VaeConfig config = GoldenOf("2.1").vae_config();
  config.decoder_base_dim = 7;
  config.dim_mult = {1, 1, 4, 4};
  const absl::Status status = LoadWanVae(GoldenOf("2.1").vae(), config, {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("width 7 of stage 1 cannot be halved"));
}

TEST(LoadWanVaeTest, NamesTheTensorOfAFlatListThatIsMissing) {
  InMemoryWeights weights = InMemoryWeights::CopyOf(GoldenOf("2.1").vae());
  weights.Remove("decoder.upsamples.7.time_conv.bias");
  const absl::Status status = LoadWanVae(weights, GoldenOf("2.1").vae_config(), {}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("decoder.upsamples.7.time_conv.bias"));
}

}  // namespace
}  // namespace wan
