#include "engine/checkpoint/expected_tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "engine/checkpoint/synthetic_models.h"
#include "engine/checkpoint/upstream_constants.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using Names = std::map<std::string, std::string>;

// Upstream's name -> diffusers' name, of the reference data's tiny models.
Names GoldenNames(const char* component) {
  const nlohmann::json map =
      nlohmann::json::parse(testing::ReadFile(WAN_GOLDEN_DIR "/key_map.json"));
  return map.at(component).get<Names>();
}

template <typename Config>
Names NamesOf(const Config& config) {
  Names names;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    EXPECT_TRUE(names.emplace(spec.name, spec.diffusers_name).second) << spec.name;
  }
  return names;
}

SyntheticModel Tiny() { return FindSyntheticModel("ti2v-tiny").value(); }

TEST(ExpectedTensorsTest, NamesAreThoseOfTheKeyMap) {
  EXPECT_EQ(NamesOf(Tiny().transformer), GoldenNames("transformer"));
  EXPECT_EQ(NamesOf(Tiny().text_encoder), GoldenNames("text_encoder"));
  EXPECT_EQ(NamesOf(Tiny().vae), GoldenNames("vae2.2"));
  VaeConfig vae21 = UpstreamVae(VaeKind::kWan21);
  vae21.z_dim = 16;
  vae21.base_dim = vae21.decoder_base_dim = 8;
  EXPECT_EQ(NamesOf(vae21), GoldenNames("vae2.1"));
}

TEST(ExpectedTensorsTest, NormsCanBeLeftOut) {
  TransformerConfig config = Tiny().transformer;
  const size_t all = ExpectedTensors(config).size();
  config.cross_attn_norm = false;
  EXPECT_EQ(ExpectedTensors(config).size(), all - 2 * config.num_layers);
  config.qk_norm = false;
  EXPECT_EQ(ExpectedTensors(config).size(), all - 6 * config.num_layers);
}

// The published models: 5.0, 5.7 and 0.7 billion parameters; Wan2.2_VAE.pth has 2,818,754,672 bytes
// of fp32 numbers.
TEST(ExpectedTensorsTest, PublishedModelsHaveTheirSize) {
  const auto parameters = [](const auto& config) {
    int64_t sum = 0;
    for (const TensorSpec& spec : ExpectedTensors(config)) sum += *ElementCount(spec.shape);
    return sum;
  };
  const SyntheticModel full = FindSyntheticModel("ti2v-5b").value();
  EXPECT_EQ(parameters(full.transformer), 4'999'787'712);
  EXPECT_EQ(parameters(full.text_encoder), 5'680'910'336);
  EXPECT_EQ(parameters(full.vae), 704'688'668);
}

}  // namespace
}  // namespace wan
