// The LoRAs that the server finds in folders, and the list that edits change.
#include "server/jobs/lora_folders.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/jobs/lora_list.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LoraFoldersTest : public ::testing::Test {
 protected:
  void Touch(const std::string& name) {
    const std::filesystem::path path = folder_.path() / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }

  // "NAME@EXPERT=FILE" of each LoRA.
  std::vector<std::string> Found(const std::string& model = "m",
                                 const LoraFolders::Schedules& schedules = {}) {
    const LoraFolders folders({{"", folder_.path().string()}}, schedules);
    std::vector<std::string> texts;
    const auto found = folders.Find(model);
    EXPECT_TRUE(found.ok()) << found.status();
    for (const LoraSource& source : found.value()) {
      EXPECT_TRUE(source.found);
      texts.push_back(absl::StrCat(
          source.name, source.expert ? absl::StrCat("@", std::string(NameOf(*source.expert))) : "",
          "=",
          std::filesystem::path(source.path).lexically_relative(folder_.path().string()).string(),
          source.schedule ? absl::StrCat(" ", source.schedule->steps) : ""));
    }
    return texts;
  }

  TempFolder folder_;
};

TEST_F(LoraFoldersTest, ASchedulesNameMayBeWrong) {
  Touch("fast.safetensors");
  ModelSpec a14b = {"a14b", "/a"};
  a14b.loras.push_back({"own", std::nullopt, "/own"});
  const LoraFolders folders({{"5b", folder_.path().string()}}, {{{"5b", "fast"}, {.steps = 4}},
                                                                {{"5b", "fats"}, {.steps = 4}},
                                                                {{"", "fast"}, {.steps = 4}},
                                                                {{"a14b", "fast"}, {.steps = 4}},
                                                                {{"a14b", "own"}, {.steps = 4}}});
  const auto unused = folders.FindUnused({{"5b", "/5b"}, a14b});
  ASSERT_TRUE(unused.ok()) << unused.status();
  std::vector<std::string> texts;
  for (const auto& one : *unused) {
    texts.push_back(absl::StrCat(one.model, "/", one.name, " of ", absl::StrJoin(one.known, ",")));
  }
  EXPECT_THAT(texts, ElementsAre("5b/fats of fast", "a14b/fast of own"));
}

TEST_F(LoraFoldersTest, FilesHaveTheirNames) {
  Touch("style.safetensors");
  Touch("b w (v2).safetensors");
  Touch("high_contrast.safetensors");
  Touch("readme.md");
  Touch("peft/adapter_model.safetensors");
  EXPECT_THAT(Found(), ElementsAre("b_w__v2_=b w (v2).safetensors",
                                   "high_contrast=high_contrast.safetensors", "peft=peft",
                                   "style=style.safetensors"));
}

TEST_F(LoraFoldersTest, TwoFilesThatDifferInTheExpertAreAPair) {
  Touch("wan2.2_t2v_lightx2v_4steps_lora_v1.1_high_noise.safetensors");
  Touch("wan2.2_t2v_lightx2v_4steps_lora_v1.1_low_noise.safetensors");
  Touch("Wan22_T2V_HIGH_rank64.safetensors");
  Touch("Wan22_T2V_LOW_rank64.safetensors");
  Touch("mine@high.safetensors");
  Touch("alone_low_noise.safetensors");
  Touch("Seko-V1/high_noise_model.safetensors");
  Touch("Seko-V1/low_noise_model.safetensors");
  EXPECT_THAT(Found(), ElementsAre("Seko-V1@high=Seko-V1/high_noise_model.safetensors",
                                   "Seko-V1@low=Seko-V1/low_noise_model.safetensors",
                                   "Wan22_T2V_rank64@high=Wan22_T2V_HIGH_rank64.safetensors",
                                   "Wan22_T2V_rank64@low=Wan22_T2V_LOW_rank64.safetensors",
                                   "alone_low_noise@low=alone_low_noise.safetensors",
                                   "mine@high=mine@high.safetensors",
                                   "wan2.2_t2v_lightx2v_4steps_lora_v1.1@high="
                                   "wan2.2_t2v_lightx2v_4steps_lora_v1.1_high_noise.safetensors",
                                   "wan2.2_t2v_lightx2v_4steps_lora_v1.1@low="
                                   "wan2.2_t2v_lightx2v_4steps_lora_v1.1_low_noise.safetensors"));
}

// Files that were not made for each other do not become one LoRA.
TEST_F(LoraFoldersTest, AFirstFolderAndAPairHaveTheName) {
  Touch("a/x@high.safetensors");
  Touch("a/y.safetensors");
  Touch("a/y_high.safetensors");
  Touch("a/y_low.safetensors");
  Touch("b/x@low.safetensors");
  Touch("b/z.safetensors");
  const std::string root = folder_.path().string();
  const LoraFolders folders({{"", root + "/a"}, {"", root + "/b"}}, {});
  const auto found = folders.Find("m");
  ASSERT_TRUE(found.ok()) << found.status();
  std::vector<std::string> paths;
  for (const LoraSource& source : *found) paths.push_back(source.path.substr(root.size()));
  EXPECT_THAT(paths, ElementsAre("/a/x@high.safetensors", "/a/y_high.safetensors",
                                 "/a/y_low.safetensors", "/b/z.safetensors"));
}

TEST(LoraListTest, ALoraThatGetsAFileForAnotherExpertHasChanged) {
  const LoraSource high = {"fast", ExpertRole::kHighNoise, "/high"};
  const LoraSource low = {"fast", ExpertRole::kLowNoise, "/low"};
  const LoraSource other = {"style", std::nullopt, "/style"};
  EXPECT_TRUE(Extends({high, other}, {high}));
  EXPECT_FALSE(Extends({high, low}, {high}));
}

TEST_F(LoraFoldersTest, SchedulesOfOneModelOrAll) {
  Touch("fast.safetensors");
  Touch("quick.safetensors");
  LoraFolders::Schedules schedules;
  schedules[{"", "fast"}] = {.steps = 4};
  schedules[{"m", "fast"}] = {.steps = 8};
  schedules[{"other", "quick"}] = {.steps = 2};
  EXPECT_THAT(Found("m", schedules),
              ElementsAre("fast=fast.safetensors 8", "quick=quick.safetensors"));
  EXPECT_THAT(Found("n", schedules),
              ElementsAre("fast=fast.safetensors 4", "quick=quick.safetensors"));
}

TEST_F(LoraFoldersTest, AFolderOfAnotherModelAndOneThatIsNotThere) {
  Touch("style.safetensors");
  const LoraFolders folders({{"other", folder_.path().string()}}, {});
  EXPECT_THAT(folders.Find("m").value(), ::testing::IsEmpty());
  const LoraFolders gone({{"", "/nowhere/loras"}}, {});
  EXPECT_EQ(gone.Find("m").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(gone.Find("m").status().message()),
              HasSubstr("lora_dirs is /nowhere/loras, which cannot be read: "));
}

const LoraSource kStyle = {"style", std::nullopt, "/style"};
const LoraSource kHigh = {"fast", ExpertRole::kHighNoise, "/high"};
const LoraSource kLow = {"fast", ExpertRole::kLowNoise, "/low"};

TEST(LoraListTest, EditsReplaceByNameAndExpertAndRemoveByName) {
  std::vector<LoraSource> loras = {kStyle, kHigh, kLow};
  const LoraSource other = {"fast", ExpertRole::kLowNoise, "/other"};
  EXPECT_TRUE(Edit({{other}, {"style"}}, {}, loras).ok());
  EXPECT_THAT(loras, ElementsAre(kHigh, other));
  LoraSource found = {"lying", std::nullopt, "/d/lying"};
  found.found = true;
  const absl::Status refused = Edit({{}, {"nobody", "lying"}}, {found}, loras);
  const std::vector<FieldViolation> violations = FieldViolationsOf(refused);
  ASSERT_EQ(violations.size(), 2u);
  EXPECT_EQ(violations[0].field, "removed_loras[0]");
  EXPECT_EQ(violations[0].description,
            "is 'nobody'; must be a LoRA of the model, whose LoRAs are: fast");
  EXPECT_THAT(violations[1].description, HasSubstr("lies in a folder of lora_dirs"));
}

TEST(LoraListTest, RegisteredOnesComeBeforeFoundOnes) {
  LoraSource found = {"style", std::nullopt, "/d/style"};
  found.found = true;
  LoraSource other = {"other", std::nullopt, "/d/other"};
  other.found = true;
  std::vector<LoraSource> loras = {kStyle};
  AddFound({other, found}, loras);
  EXPECT_THAT(loras, ElementsAre(kStyle, other));
  EXPECT_THAT(Registered(loras), ElementsAre(kStyle));
  EXPECT_TRUE(Extends(loras, {kStyle}));
  EXPECT_FALSE(Extends(loras, {kStyle, kHigh}));
}

}  // namespace
}  // namespace wan::server
