#include "demo/evaluate/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/fakes/temp_folder.h"

namespace wan::demo {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  absl::StatusOr<RunFolder> Open(const Json& settings = {{"model", "demo"}}) {
    return RunFolder::Open(parent_ / "run", settings);
  }

  const fakes::TempFolder parent_;
};

TEST_F(RunFolderTest, IdsStayTheSameAndAreNeverAnothers) {
  const std::string id = Open()->RequestId("text-a");
  EXPECT_EQ(Open()->RequestId("text-a"), id);
  EXPECT_NE(Open()->RequestId("text-b"), id);
  EXPECT_NE(RunFolder::Open(parent_ / "other", {{"model", "demo"}})->RequestId("text-a"), id);
  // The server takes so many characters; a scene's id has at most 64.
  EXPECT_LE(Open()->RequestId("image-" + std::string(64, 'a')).size(), 128u);
}

TEST_F(RunFolderTest, KeepsResults) {
  VideoResult result{.job = "jobs/a",
                     .request = {{"steps", 20}, {"seed", 7}},
                     .sight = {"black", {{"red", "star", "spin", "left", 0.75, 1}}},
                     .first_frame_psnr = 41.5,
                     .create_time = 1.5,
                     .start_time = 2.25,
                     .end_time = 1700000000.125};
  ASSERT_TRUE(Open()->Save("text-a", result).ok());
  EXPECT_EQ(Open()->Load("text-a"), result);
  result.first_frame_psnr.reset();
  result.sight.objects.clear();
  ASSERT_TRUE(Open()->Save("text-a", result).ok());
  EXPECT_EQ(Open()->Load("text-a"), result);
  EXPECT_EQ(Open()->Load("text-b"), std::nullopt);
}

TEST_F(RunFolderTest, HalfAResultIsNone) {
  const RunFolder folder = *Open();
  ASSERT_TRUE(folder.Save("text-a", {.job = "jobs/a"}).ok());
  const fs::path file = parent_ / "run/seen/text-a.json";
  const std::string text = fakes::ReadFile(file);
  fakes::WriteFile(file, text.substr(0, text.size() / 2));
  EXPECT_EQ(folder.Load("text-a"), std::nullopt);
  fakes::WriteFile(file, "{\"job\": 7}");
  EXPECT_EQ(folder.Load("text-a"), std::nullopt);
}

TEST_F(RunFolderTest, IsOfOneKindOfRun) {
  ASSERT_TRUE(Open().ok());
  const absl::Status other = Open({{"model", "demo"}, {"steps", 10}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(other));
  EXPECT_THAT(other.message(), HasSubstr("has a run with other settings"));
  fakes::WriteFile(parent_ / "run/run.json", "[]");
  EXPECT_THAT(Open().status().message(), HasSubstr("run.json is not a run's"));
}

TEST_F(RunFolderTest, NamesAFolderThatCannotBeMade) {
  fakes::WriteFile(parent_ / "run", "a file");
  EXPECT_TRUE(absl::IsInternal(Open().status()));
  EXPECT_THAT(Open().status().message(), HasSubstr("cannot make " + (parent_ / "run").string()));
}

}  // namespace
}  // namespace wan::demo
