#include "demo/evaluate/scenes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_replace.h"
#include "tests/client/fakes/temp_folder.h"

namespace wan::demo {
namespace {

using testing::HasSubstr;

constexpr char kLine[] =
    R"({"id": "s-1", "caption": "a red square", "background": "black", "objects": [)"
    R"({"shape": "square", "colour": "red", "motion": "up", "size": "", "side": "left"}], )"
    R"("image": "s-1.png"})";

class ScenesTest : public testing::Test {
 protected:
  absl::StatusOr<SceneFile> Read(const std::string& text) {
    fakes::WriteFile(folder_ / "scenes.jsonl", text);
    return ReadScenes((folder_ / "scenes.jsonl").string());
  }

  // What is said about the line with `from` replaced.
  std::string Complaint(const std::string& from, const std::string& to) {
    const std::string other = absl::StrReplaceAll(kLine, {{"s-1\",", "s-2\","}});
    const absl::StatusOr<SceneFile> file =
        Read(std::string(kLine) + "\n" + absl::StrReplaceAll(other, {{from, to}}));
    EXPECT_TRUE(absl::IsInvalidArgument(file.status()));
    EXPECT_THAT(file.status().message(), HasSubstr("scenes.jsonl line 2: "));
    return std::string(file.status().message());
  }

  const fakes::TempFolder folder_;
};

TEST_F(ScenesTest, Reads) {
  const absl::StatusOr<SceneFile> file = Read(std::string(kLine) + "\n\n");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->scenes.size(), 1u);
  const Scene& scene = file->scenes[0];
  EXPECT_EQ(scene.id, "s-1");
  EXPECT_EQ(scene.caption, "a red square");
  EXPECT_EQ(scene.background, "black");
  EXPECT_EQ(scene.image, "s-1.png");
  ASSERT_EQ(scene.objects.size(), 1u);
  EXPECT_EQ(scene.objects[0].shape, "square");
  EXPECT_EQ(scene.objects[0].colour, "red");
  EXPECT_EQ(scene.objects[0].motion, "up");
  EXPECT_EQ(scene.objects[0].side, "left");
}

TEST_F(ScenesTest, ReadsWhatDiffersFromTheRun) {
  const absl::StatusOr<SceneFile> file = Read(absl::StrReplaceAll(
      kLine, {{"\"image\"",
               "\"negative_prompt\": \"a star\", \"width\": 384, \"height\": 256, "
               "\"frames\": 65, "
               "\"groups\": [\"capitals\", \"384x256\"], \"image\""}}));
  ASSERT_TRUE(file.ok()) << file.status();
  const Scene& scene = file->scenes[0];
  EXPECT_EQ(scene.negative_prompt, "a star");
  EXPECT_EQ(scene.width, 384);
  EXPECT_EQ(scene.height, 256);
  EXPECT_EQ(scene.frames, 65);
  EXPECT_EQ(scene.groups, (std::vector<std::string>{"capitals", "384x256"}));
  EXPECT_EQ(Read(kLine)->scenes[0].width, 0);
  EXPECT_THAT(Complaint("\"image\"", "\"frames\": 0, \"image\""),
              HasSubstr("\"frames\" is to be a whole number from 1 to 65536"));
  EXPECT_THAT(Complaint("\"image\"", "\"groups\": \"a\", \"image\""),
              HasSubstr("\"groups\" is to be a list of texts"));
}

TEST_F(ScenesTest, OtherScenesHaveAnotherDigest) {
  const std::string digest = Read(kLine)->sha256;
  EXPECT_EQ(digest.size(), 64u);
  EXPECT_EQ(Read(kLine)->sha256, digest);
  EXPECT_NE(Read(absl::StrReplaceAll(kLine, {{"a red", "one red"}}))->sha256, digest);
}

TEST_F(ScenesTest, NamesLineAndFault) {
  EXPECT_THAT(Complaint("\"square\"", "\"hexagon\""),
              HasSubstr("\"shape\": the demo's world has no 'hexagon'"));
  EXPECT_THAT(Complaint("\"red\"", "\"mauve\""), HasSubstr("no 'mauve'"));
  EXPECT_THAT(Complaint("\"black\"", "\"mauve\""), HasSubstr("\"background\": "));
  EXPECT_THAT(Complaint("\"a red square\"", "7"), HasSubstr("\"caption\" is to be a text"));
  EXPECT_THAT(Complaint("s-2", "s-1"), HasSubstr("id 's-1' is there twice"));
  EXPECT_THAT(Complaint("s-2", "../s"), HasSubstr("\"id\" is to have at most 64 letters"));
  EXPECT_THAT(Complaint("s-1.png", "/etc/s.png"), HasSubstr("\"image\" is to have"));
  EXPECT_THAT(Complaint("\"objects\"", "\"things\""), HasSubstr("one or two objects"));
  EXPECT_THAT(Complaint("{", "["), HasSubstr("is to be a JSON object"));
}

TEST_F(ScenesTest, RefusesFilesWithoutScenes) {
  EXPECT_THAT(Read("\n").status().message(), HasSubstr("scenes.jsonl has no scenes"));
  EXPECT_TRUE(absl::IsNotFound(ReadScenes((folder_ / "other").string()).status()));
}

}  // namespace
}  // namespace wan::demo
