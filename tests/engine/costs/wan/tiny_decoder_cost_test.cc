// The tiny decoder's description holds for the code: the loader's groups, and what is allocated.
#include "engine/costs/wan/tiny_decoder_cost.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/checkpoint/synthetic_models.h"
#include "engine/costs/wan/vae_cost.h"
#include "engine/models/wan/vae.h"
#include "tests/engine/costs/wan/cost_support.h"
#include "tests/engine/random_tensor.h"
#include "tests/support/peak_allocator.h"

namespace wan {
namespace {

// The published dimensions.
TinyDecoderConfig Published(bool old) {
  return {.z_dim = old ? 16 : 48, .widths = {256, 128, 64, 64}, .patch_size = old ? 1 : 2};
}

// A narrow autoencoder with a tiny decoder.
VaeConfig Narrow(const std::string& name) {
  VaeConfig config = FindSyntheticModel(name).value().vae;
  config.base_dim = 8;
  config.decoder_base_dim = 8;
  config.tiny_decoder = Published(config.kind == VaeKind::kWan21);
  // So wide that layers hold more than the frames on their way to the host.
  config.tiny_decoder->widths = {32, 32, 32, 32};
  return config;
}

// The tensors that `source` needs for both.
std::vector<TensorSpec> TensorsOf(const VaeConfig& config) {
  std::vector<TensorSpec> tensors = ExpectedTensors(config);
  for (const TensorSpec& tensor : ExpectedTensors(*config.tiny_decoder)) tensors.push_back(tensor);
  return tensors;
}

std::unique_ptr<VideoAutoencoder> Load(const VaeConfig& config,
                                       std::shared_ptr<ComponentWeights> weights) {
  const SyntheticWeights source(TensorsOf(config));
  return LoadWanVae(source, config, {.weights = std::move(weights)}).value();
}

class TinyDecoderCostTest : public testing::TestWithParam<std::string> {};

TEST_P(TinyDecoderCostTest, LoaderEntersTheDescribedGroups) {
  const VaeConfig config = Narrow(GetParam());
  const auto weights = EmptyWeights();
  const auto vae = Load(config, weights);
  ExpectLoadedAsDescribed(VaeWeightGroups(config), *weights, at::kFloat);
}

TEST_P(TinyDecoderCostTest, TheWalkHoldsWhatIsAllocated) {
  const OneThread one_thread;
  const VaeConfig config = Narrow(GetParam());
  const auto vae = Load(config, nullptr);
  for (const LatentSize size : {LatentSize{3, 8, 12}, LatentSize{1, 16, 12}}) {
    SCOPED_TRACE(size.frames);
    const at::Tensor latents =
        RandomTensor({config.z_dim, size.frames, size.height, size.width}, 1);
    VaePass pass;
    pass.decoder = Decoder::kTiny;
    PeakAllocator memory;
    at::Tensor on_its_way;
    const auto download = [&](const at::Tensor& frames) {
      on_its_way = frames.to(at::kByte);
      return absl::OkStatus();
    };
    ASSERT_TRUE(vae->Decode(latents, download, pass).ok());
    on_its_way.reset();
    const uint64_t walk = DecodingBytes(config, size, {.decoder = Decoder::kTiny});
    // oneDNN unfolds some rows of a convolution's input.
    EXPECT_GE(memory.peak(), walk - walk / 50);
    EXPECT_LE(memory.peak(), walk + walk / 10);
  }
}

INSTANTIATE_TEST_SUITE_P(Vaes, TinyDecoderCostTest, testing::Values("t2v-a14b", "ti2v-5b"),
                         [](const auto& info) {
                           return info.param == "ti2v-5b" ? "of_5b" : "of_a14b";
                         });

// Memory does not grow with the length of the video, and is a part of the full decoder's.
TEST(TinyDecoderCost, PublishedVideosTakeLittle) {
  VaeConfig config = FindSyntheticModel("ti2v-5b").value().vae;
  config.tiny_decoder = Published(/*old=*/false);
  const VaeArithmetic tiny{.precision = VaePrecision::kFp16, .decoder = Decoder::kTiny};
  const LatentSize size{31, 44, 80};
  EXPECT_EQ(DecodingBytes(config, size, tiny), DecodingBytes(config, {91, 44, 80}, tiny));
  EXPECT_LT(DecodingBytes(config, size, tiny),
            DecodingBytes(config, size, {.precision = VaePrecision::kFp16, .fused = true}) / 4);
  EXPECT_LT(DecodingFlops(config, size, Decoder::kTiny), DecodingFlops(config, size) / 20);
  // Frames after the first latent frame cost the same each.
  const double one = DecodingFlops(config, {1, 8, 8}, Decoder::kTiny);
  const double two = DecodingFlops(config, {2, 8, 8}, Decoder::kTiny);
  EXPECT_NEAR(DecodingFlops(config, {3, 8, 8}, Decoder::kTiny) - two, two - one, 1e-6 * two);
  EXPECT_GT(two - one, one);
}

}  // namespace
}  // namespace wan
