#include "engine/checkpoint/generation_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class GenerationDefaultsTest : public ::testing::Test {
 protected:
  std::optional<GenerationDefaults> Read(const std::string& json) {
    problems_.clear();
    testing::WriteFile(folder_ / "d.json", json);
    return ReadGenerationDefaults((folder_ / "d.json").string(), problems_);
  }

  // The one problem that reading `json` gives.
  std::string Problem(const std::string& json) {
    EXPECT_FALSE(Read(json).has_value()) << json;
    EXPECT_EQ(problems_.size(), 1u) << json;
    return problems_.empty() ? "" : std::string(problems_.front().message());
  }

  testing::TempFolder folder_;
  std::vector<absl::Status> problems_;
};

TEST_F(GenerationDefaultsTest, ReadsEveryMember) {
  const auto defaults = Read(
      R"({"width": 256, "height": 128, "num_frames": 33, "fps": 16, "steps": 20, "shift": 5,
          "guidance_scale": [3, 4.5], "solver": "euler", "negative_prompt": "grey"})");
  ASSERT_TRUE(defaults.has_value());
  EXPECT_EQ(*defaults, (GenerationDefaults{256, 128, 33, 16, 20, {3, 4.5}, 5.0, "euler", "grey"}));
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(GenerationDefaultsTest, WhatIsLeftOutStaysUnset) {
  const auto defaults = Read(R"({"steps": 20})");
  ASSERT_TRUE(defaults.has_value());
  GenerationDefaults expected;
  expected.steps = 20;
  EXPECT_EQ(*defaults, expected);
  EXPECT_EQ(Read("{}"), GenerationDefaults{});
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(GenerationDefaultsTest, NoFileIsNoProblem) {
  EXPECT_FALSE(ReadGenerationDefaults((folder_ / "absent.json").string(), problems_).has_value());
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(GenerationDefaultsTest, SaysWhatIsWrong) {
  EXPECT_THAT(Problem(R"({"frames": 33})"),
              HasSubstr("\"frames\" is unknown; expected one of fps, guidance_scale, height"));
  EXPECT_THAT(Problem(R"({"width": 0})"), HasSubstr("\"width\" is 0, expected"));
  EXPECT_THAT(Problem(R"({"steps": "20"})"), HasSubstr("expected an integer from 1"));
  EXPECT_THAT(Problem(R"({"guidance_scale": 4})"), HasSubstr("expected an array"));
  EXPECT_THAT(Problem("{"), HasSubstr("d.json"));
}

TEST_F(GenerationDefaultsTest, ACheckpointHasThemInEitherLayout) {
  for (const std::string layout : {"original", "diffusers"}) {
    SCOPED_TRACE(layout);
    const std::filesystem::path path = folder_ / layout;
    testing::LinkFolder(std::string(WAN_CHECKPOINT_DIR "/ti2v-5b/") + layout, path);
    EXPECT_FALSE((*Checkpoint::Open(path.string()))->generation_defaults().has_value());
    testing::WriteFile(path / "generation_defaults.json", R"({"guidance_scale": [2]})");
    const auto checkpoint = Checkpoint::Open(path.string());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    ASSERT_TRUE((*checkpoint)->generation_defaults().has_value());
    EXPECT_THAT((*checkpoint)->generation_defaults()->guidance_scale, ElementsAre(2));
    testing::WriteFile(path / "generation_defaults.json", R"({"guidance": [2]})");
    EXPECT_THAT(std::string(Checkpoint::Open(path.string()).status().message()),
                HasSubstr("\"guidance\" is unknown"));
  }
}

}  // namespace
}  // namespace wan
