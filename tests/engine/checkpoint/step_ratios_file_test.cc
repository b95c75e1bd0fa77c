#include "engine/checkpoint/step_ratios_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "tests/engine/formats/files.h"

namespace wan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

class StepRatiosFileTest : public ::testing::Test {
 protected:
  std::optional<StepRatios> Read(const std::string& text, FamilyId family = FamilyId::kT2vA14b) {
    problems_.clear();
    testing::WriteFile(folder_ / "r.json", text);
    return ReadStepRatios((folder_ / "r.json").string(), FindModelFamily(family), problems_);
  }

  // The one problem that the good file has after `change`.
  std::string Problem(const std::string& pointer, const Json& value) {
    Json file = good_;
    file[Json::json_pointer(pointer)] = value;
    EXPECT_FALSE(Read(file.dump()).has_value()) << pointer;
    EXPECT_EQ(problems_.size(), 1u) << pointer;
    return problems_.empty() ? "" : std::string(problems_.front().message());
  }

  const Json good_ = Json::parse(R"({"version": 1, "model": "t2v-a14b", "solver": "unipc",
      "steps": 5, "shift": 12, "guidance_scale": [3, 4],
      "experts": {"high": {"conditional": [0.9], "unconditional": [0.8]},
                  "low": {"conditional": [0.7, 0.6], "unconditional": [0.5, 0.4]}}})");
  testing::TempFolder folder_;
  std::vector<absl::Status> problems_;
};

TEST_F(StepRatiosFileTest, ReadsEveryMember) {
  StepRatios expected{.solver = "unipc",
                      .steps = 5,
                      .shift = 12,
                      .guidance_scale = {3, 4},
                      .experts = {{{0.9}, {0.8}, {}}, {{0.7, 0.6}, {0.5, 0.4}, {}}},
                      .threshold = {},
                      .most_in_row = {}};
  EXPECT_EQ(Read(good_.dump()), expected);
  Json file = good_;
  file["threshold"] = 0.1;
  file["most_in_row"] = 4;
  file["experts"]["low"]["retained_share"] = 0.3;
  file["experts"]["high"].erase("unconditional");
  expected.threshold = 0.1;
  expected.most_in_row = 4;
  expected.experts[1].retained_share = 0.3;
  expected.experts[0].unconditional.clear();
  EXPECT_EQ(Read(file.dump()), expected);
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(StepRatiosFileTest, NoFileIsNoProblem) {
  const ModelFamily& family = FindModelFamily(FamilyId::kT2vA14b);
  EXPECT_FALSE(ReadStepRatios((folder_ / "none.json").string(), family, problems_).has_value());
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(StepRatiosFileTest, SaysWhatIsWrong) {
  EXPECT_THAT(Problem("/version", 2), HasSubstr("\"version\" is 2, expected an integer from 1"));
  EXPECT_THAT(
      Problem("/model", "ti2v-5b"),
      HasSubstr("r.json: \"model\" is ti2v-5b; must be t2v-a14b, the family of this model"));
  EXPECT_THAT(Problem("/stepz", 1), HasSubstr("\"stepz\" is unknown; expected one of experts"));
  EXPECT_THAT(Problem("/shift", 0), HasSubstr("\"shift\" is 0; must be above 0"));
  EXPECT_THAT(Problem("/threshold", 1.5), HasSubstr("\"threshold\" is 1.5; must be above 0"));
  EXPECT_THAT(Problem("/most_in_row", 0), HasSubstr("expected an integer from 1"));
  EXPECT_THAT(Problem("/steps", 6),
              HasSubstr("the lists are of 5 steps; \"steps\" is 6 (an expert has one ratio fewer"));
  EXPECT_THAT(Problem("/experts", 1), HasSubstr("\"experts\" must be an object"));
  EXPECT_THAT(Problem("/experts/only", Json::object()), HasSubstr("\"only\" is unknown"));
  EXPECT_THAT(Problem("/experts/high", 1), HasSubstr("\"high\" must be an object"));
  EXPECT_THAT(Problem("/experts/low/ratios", 1),
              HasSubstr("r.json: low: \"ratios\" is unknown; expected one of conditional"));
  EXPECT_THAT(Problem("/experts/low/conditional", {0.7, -1}),
              HasSubstr("\"conditional\"[1] is -1; must be a ratio above 0"));
  EXPECT_THAT(Problem("/experts/low/unconditional", {0.7}),
              HasSubstr("\"unconditional\" has 1 ratios; must have 2"));
  EXPECT_THAT(Problem("/experts/low/retained_share", 2), HasSubstr("must be from 0 to 1"));
  EXPECT_FALSE(Read("{").has_value());
  EXPECT_FALSE(Read(good_.dump(), FamilyId::kTi2v5b).has_value());
}

TEST_F(StepRatiosFileTest, ACheckpointHasThemInEitherLayout) {
  for (const std::string layout : {"original", "diffusers"}) {
    SCOPED_TRACE(layout);
    const std::filesystem::path path = folder_ / layout;
    testing::LinkFolder(std::string(WAN_CHECKPOINT_DIR "/ti2v-5b/") + layout, path);
    EXPECT_FALSE((*Checkpoint::Open(path.string()))->step_ratios().has_value());
    testing::WriteFile(path / "step_ratios.json", R"({"version": 1, "model": "ti2v-5b",
        "solver": "euler", "steps": 2, "shift": 5, "guidance_scale": [5],
        "experts": {"only": {"conditional": [0.9]}}})");
    const auto checkpoint = Checkpoint::Open(path.string());
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    ASSERT_TRUE((*checkpoint)->step_ratios().has_value());
    EXPECT_EQ((*checkpoint)->step_ratios()->steps, 2);
    const auto& files = (*checkpoint)->files();
    EXPECT_TRUE(std::any_of(files.begin(), files.end(), [](const ModelFile& file) {
      return file.name == "step_ratios.json";
    })) << "receipts have its digest";
    testing::WriteFile(path / "step_ratios.json", "{}");
    EXPECT_THAT(std::string(Checkpoint::Open(path.string()).status().message()),
                AllOf(HasSubstr("step_ratios.json"), HasSubstr("\"version\" is missing")));
  }
}

}  // namespace
}  // namespace wan
