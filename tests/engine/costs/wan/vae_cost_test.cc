// The autoencoders' description holds for the code: the loader's groups, and what is allocated.
#include "engine/costs/wan/vae_cost.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/synthetic_models.h"
#include "engine/models/wan/vae.h"
#include "tests/engine/costs/wan/cost_support.h"
#include "tests/engine/random_tensor.h"
#include "tests/support/peak_allocator.h"

namespace wan {
namespace {

constexpr int64_t kFp32 = 4;

// Besides what a GPU holds, oneDNN unfolds some rows of a convolution's input, and the norms keep a
// length for each pixel, which the GPU's kernel does not. With the sizes below that is at most 10
// %.
void ExpectWithin(uint64_t allocated, uint64_t walk) {
  EXPECT_GE(allocated, walk);
  EXPECT_LE(allocated, walk + walk / 10);
}

struct Case {
  std::string name;
  VaeConfig config;
  LatentSize size;
};

// The published architecture of this name, with narrower stages.
VaeConfig Narrow(const std::string& name, int64_t base, int64_t decoder_base) {
  VaeConfig config = FindSyntheticModel(name).value().vae;
  config.base_dim = base;
  config.decoder_base_dim = decoder_base;
  return config;
}

std::vector<Case> Cases() {
  const VaeConfig old = Narrow("t2v-a14b", 8, 8);
  const VaeConfig nested = Narrow("ti2v-5b", 8, 12);
  std::vector<Case> cases;
  cases.push_back({"of_a14b", old, {3, 8, 6}});
  cases.push_back({"of_a14b_one_frame", old, {1, 8, 12}});
  cases.push_back({"of_a14b_wide", Narrow("t2v-a14b", 16, 16), {2, 4, 6}});
  cases.push_back({"of_5b", nested, {3, 4, 6}});
  cases.push_back({"of_5b_one_frame", nested, {1, 12, 16}});
  cases.push_back({"of_5b_wide", Narrow("ti2v-5b", 16, 16), {2, 4, 6}});
  return cases;
}

class VaeCostTest : public testing::TestWithParam<Case> {
 protected:
  static std::unique_ptr<VideoAutoencoder> Load(const VaeConfig& config,
                                                std::shared_ptr<ComponentWeights> weights) {
    const SyntheticWeights source(ExpectedTensors(config));
    return LoadWanVae(source, config, {.weights = std::move(weights)}).value();
  }
};

TEST_P(VaeCostTest, LoaderEntersTheDescribedGroups) {
  const VaeConfig& config = GetParam().config;
  const auto weights = EmptyWeights();
  const auto vae = Load(config, weights);
  ExpectLoadedAsDescribed(VaeWeightGroups(config), *weights, at::kFloat);
}

TEST_P(VaeCostTest, WalksHoldWhatIsAllocated) {
  const OneThread one_thread;
  const auto& [name, config, size] = GetParam();
  const auto vae = Load(config, nullptr);
  const at::Tensor latents = RandomTensor({config.z_dim, size.frames, size.height, size.width}, 1);
  const at::Tensor video =
      RandomTensor({3, 1 + (size.frames - 1) * config.stride_temporal,
                    size.height * config.stride_spatial, size.width * config.stride_spatial},
                   2);

  PeakAllocator memory;
  // A chunk in 8 bits stays on the device until the next one's is on its way, as FrameDownload has
  // it.
  at::Tensor on_its_way;
  const auto download = [&](const at::Tensor& frames) {
    on_its_way = frames.to(at::kByte);
    return absl::OkStatus();
  };
  ASSERT_TRUE(vae->Decode(latents, download, {}).ok());
  on_its_way.reset();
  ExpectWithin(memory.peak(), DecodingBytes(config, size, kFp32));

  memory.Begin();
  ASSERT_TRUE(vae->Encode(video, {}).ok());
  // On a CPU the pixels of a chunk are a view of the video; a GPU's are a copy.
  const int64_t chunk_frames = size.frames == 1 ? 1 : config.stride_temporal;
  const int64_t pixels = 3 * chunk_frames * video.size(2) * video.size(3) * kFp32;
  ExpectWithin(memory.peak() + static_cast<uint64_t>(pixels), EncodingBytes(config, size, kFp32));
}

// The allocator's peaks on an H200 (docs/measured/gpu.md), whose kernels need no copies that a
// CPU's do: the walk of those has no oracle on a CPU.
TEST(FusedVaeCostTest, TheEstimateIsWhatWasMeasured) {
  constexpr double kGiB = 1 << 30;
  struct Measured {
    const char* model;
    LatentSize size;
    bool encodes;
    VaePrecision precision;
    double gib;
  };
  const LatentSize of_5b{31, 44, 80};
  const LatentSize of_a14b{21, 90, 160};
  for (const auto& [name, size, encodes, precision, gib] :
       {Measured{"ti2v-5b", of_5b, false, VaePrecision::kFp16, 6.28},
        Measured{"ti2v-5b", of_5b, false, VaePrecision::kTf32, 7.64},
        Measured{"t2v-a14b", of_a14b, false, VaePrecision::kFp16, 6.21},
        Measured{"t2v-a14b", of_a14b, false, VaePrecision::kTf32, 7.63},
        Measured{"t2v-a14b", of_a14b, true, VaePrecision::kFp16, 5.32},
        Measured{"t2v-a14b", of_a14b, true, VaePrecision::kTf32, 7.34}}) {
    SCOPED_TRACE(testing::Message() << name << " " << NameOf(precision) << " " << encodes);
    const VaeConfig config = FindSyntheticModel(name).value().vae;
    const auto estimate = [&](bool fused) {
      const uint64_t bytes = encodes ? EncodingBytes(config, size, {precision, fused})
                                     : DecodingBytes(config, size, {precision, fused});
      return static_cast<double>(bytes) / kGiB;
    };
    EXPECT_GE(estimate(true), gib - 0.005) << "the figures are rounded";
    EXPECT_LE(estimate(true), 1.015 * gib);
    EXPECT_GT(estimate(false), 1.04 * gib);
  }
}

// docs/measured/performance.md: 2.01 PFLOP for 121 frames of 1280x704, 0.64 for 81 of 1280x720.
TEST(VaeFlopsTest, PublishedVideosTakeWhatTheDocumentsSay) {
  EXPECT_NEAR(DecodingFlops(FindSyntheticModel("ti2v-5b").value().vae, {31, 44, 80}) / 1e15, 2.01,
              0.005);
  EXPECT_NEAR(DecodingFlops(FindSyntheticModel("t2v-a14b").value().vae, {21, 90, 160}) / 1e15, 0.64,
              0.005);
}

// A latent frame behind the first one is four frames of video, all of them alike.
TEST(VaeFlopsTest, FramesAfterTheFirstCostTheSameEach) {
  const VaeConfig vae = FindSyntheticModel("t2v-a14b").value().vae;
  const double one = DecodingFlops(vae, {1, 8, 8});
  const double five = DecodingFlops(vae, {2, 8, 8});
  const double nine = DecodingFlops(vae, {3, 8, 8});
  EXPECT_NEAR(nine - five, five - one, 1e-6 * nine);
  EXPECT_GT(five - one, 2 * one);
  EXPECT_GT(EncodingFlops(vae, {2, 8, 8}), EncodingFlops(vae, {1, 8, 8}));
}

INSTANTIATE_TEST_SUITE_P(Shapes, VaeCostTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace wan
