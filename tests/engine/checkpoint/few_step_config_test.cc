#include "engine/checkpoint/few_step_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

Json Original() {
  return {{"infer_steps", 4},
          {"denoising_step_list", {1000, 750, 500, 250}},
          {"sample_shift", 5.0},
          {"enable_cfg", false},
          {"boundary_step_index", 2}};
}

Json Diffusers() {
  return {{"_class_name", "FlowMatchEulerDiscreteScheduler"},
          {"denoising_step_list", {1000, 750, 500, 250}},
          {"shift", 5.0},
          {"shift_terminal", nullptr},
          {"use_dynamic_shifting", false}};
}

class FewStepConfigTest : public ::testing::Test {
 protected:
  std::optional<FewStepConfig> ReadOriginal(const Json& json) {
    testing::WriteFile(folder_ / "few_step.json", json.dump());
    return ReadOriginalFewStep((folder_ / "few_step.json").string(), problems_);
  }
  std::optional<FewStepConfig> ReadDiffusers(const Json& json) {
    testing::WriteFile(folder_ / "scheduler_config.json", json.dump());
    return ReadDiffusersFewStep((folder_ / "scheduler_config.json").string(), problems_);
  }

  // The only problem, which names the file.
  std::string Problem() {
    EXPECT_EQ(problems_.size(), 1u);
    if (problems_.empty()) return "";
    std::string message(problems_.front().message());
    EXPECT_THAT(message, HasSubstr(folder_.string()));
    problems_.clear();
    return message;
  }

  testing::TempFolder folder_;
  std::vector<absl::Status> problems_;
};

TEST_F(FewStepConfigTest, ReadsWhatLightX2VWrites) {
  const auto config = ReadOriginal(Original());
  ASSERT_TRUE(config.has_value());
  EXPECT_THAT(config->timesteps, ElementsAre(1000, 750, 500, 250));
  EXPECT_EQ(config->shift, 5.0);
  EXPECT_EQ(config->boundary_step_index, 2);
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(FewStepConfigTest, BothLayoutsSayTheSame) {
  Json original = Original();
  original.erase("boundary_step_index");
  EXPECT_EQ(ReadDiffusers(Diffusers()), ReadOriginal(original));
  Json diffusers = Diffusers();
  diffusers["boundary_step_index"] = 2;
  EXPECT_EQ(ReadDiffusers(diffusers), ReadOriginal(Original()));
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(FewStepConfigTest, NoFileIsAnOrdinaryCheckpoint) {
  EXPECT_FALSE(ReadOriginalFewStep((folder_ / "few_step.json").string(), problems_).has_value());
  EXPECT_FALSE(ReadDiffusersFewStep((folder_ / "s.json").string(), problems_).has_value());
  EXPECT_FALSE(ReadDiffusers({{"_class_name", "UniPCMultistepScheduler"}}).has_value());
  EXPECT_FALSE(ReadDiffusers({{"_class_name", "FlowMatchEulerDiscreteScheduler"}, {"shift", 3}})
                   .has_value());
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(FewStepConfigTest, SaysWhatIsWrong) {
  const auto problem = [&](const char* key, const Json& value) {
    Json json = Original();
    json[key] = value;
    if (value.is_null()) json.erase(key);
    EXPECT_FALSE(ReadOriginal(json).has_value()) << key;
    return Problem();
  };
  EXPECT_THAT(problem("sample_shift", 0), HasSubstr("shift is 0, expected 0.01 to 100"));
  EXPECT_THAT(problem("sample_shift", nullptr), HasSubstr("sample_shift"));
  EXPECT_THAT(problem("enable_cfg", true), HasSubstr("few-step models run without guidance"));
  EXPECT_THAT(problem("infer_steps", 8), HasSubstr("is 8, but \"denoising_step_list\" has 4"));
  EXPECT_THAT(problem("boundary_step_index", 5), HasSubstr("boundary_step_index is 5"));
  EXPECT_THAT(problem("denoising_step_list", {1000, 750, 750, 250}),
              HasSubstr("timestep 2 is 750, expected strictly decreasing"));
  EXPECT_THAT(problem("denoising_step_list", {1001, 750, 500, 250}),
              HasSubstr("timestep 0 is 1001"));
  EXPECT_THAT(problem("denoising_step_list", {1000, 750, 500, 0}), HasSubstr("timestep 3 is 0"));
  Json empty = Original();
  empty.erase("infer_steps");
  empty.erase("boundary_step_index");
  empty["denoising_step_list"] = Json::array();
  EXPECT_FALSE(ReadOriginal(empty).has_value());
  EXPECT_THAT(Problem(), HasSubstr("number of timesteps is 0"));
}

TEST_F(FewStepConfigTest, RefusesOtherSchedules) {
  Json json = Diffusers();
  json["_class_name"] = "UniPCMultistepScheduler";
  EXPECT_FALSE(ReadDiffusers(json).has_value());
  EXPECT_THAT(Problem(), HasSubstr("the scheduler is a UniPCMultistepScheduler"));
  json = Diffusers();
  json["use_karras_sigmas"] = true;
  EXPECT_FALSE(ReadDiffusers(json).has_value());
  EXPECT_THAT(
      Problem(),
      HasSubstr("\"use_karras_sigmas\" is set: only the plain Euler schedule is supported"));
}

TEST_F(FewStepConfigTest, ACheckpointHasItInEitherLayout) {
  for (const std::string layout : {"original", "diffusers"}) {
    SCOPED_TRACE(layout);
    const std::filesystem::path path = folder_ / layout;
    testing::LinkFolder(std::string(WAN_CHECKPOINT_DIR "/t2v-a14b/") + layout, path);
    EXPECT_FALSE((*Checkpoint::Open(path.string()))->few_step().has_value());
    if (layout == "original") {
      testing::WriteFile(path / "few_step.json", Original().dump());
    } else {
      testing::ReplaceFile(path / "scheduler" / "scheduler_config.json", Diffusers().dump());
    }
    const auto checkpoint = Checkpoint::Open(path.string());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    ASSERT_TRUE((*checkpoint)->few_step().has_value());
    EXPECT_EQ((*checkpoint)->few_step()->timesteps.size(), 4u);
  }
}

TEST_F(FewStepConfigTest, OneExpertHasNoStepToSwitchAt) {
  const std::filesystem::path path = folder_ / "ti2v";
  testing::LinkFolder(WAN_CHECKPOINT_DIR "/ti2v-5b/original", path);
  testing::WriteFile(path / "few_step.json", Original().dump());
  EXPECT_THAT(std::string(Checkpoint::Open(path.string()).status().message()),
              HasSubstr("boundary_step_index is set, but there is only one expert"));
}

}  // namespace
}  // namespace wan
