#include "server/conversion/public_text.h"

#include <vector>

#include "engine/api/errors.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

TEST(PublicTextTest, PathsAreCutToTheirLastPart) {
  const struct {
    const char* text;
    const char* expected;
  } cases[] = {
      {"/models/wan/vae.pth: cannot read at byte 7: I/O error",
       "vae.pth: cannot read at byte 7: I/O error"},
      {"writing '/data/staging/a-1/video.mp4' failed", "writing 'video.mp4' failed"},
      {"(/a/b, /c/d/) and [/e]", "(b, d) and [e]"},
      {"step 1/3 took 2 s/step; and/or", "step 1/3 took 2 s/step; and/or"},
      {"see https://example.org/a/b", "see https://example.org/a/b"},
      {"the folder / is full", "the folder / is full"},
      {"path=/a/b", "path=b"},
      {"", ""},
  };
  for (const auto& c : cases) EXPECT_EQ(WithoutFolders(c.text), c.expected);
}

TEST(PublicTextTest, KnownFoldersMayHaveSpaces) {
  const std::vector<std::string> folders = {"/my models/wan 2", "relative", ""};
  EXPECT_EQ(WithoutFolders("/my models/wan 2/vae.pth: damaged", folders), "vae.pth: damaged");
  EXPECT_EQ(WithoutFolders("relative/file", folders), "relative/file");
}

TEST(PublicTextTest, AStatusKeepsItsReason) {
  const absl::Status status =
      WithoutFolders(WithReason(absl::DataLossError("/a/b is damaged"), kReasonJobDamaged), {});
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "b is damaged");
  EXPECT_EQ(ReasonOf(status), kReasonJobDamaged);
  EXPECT_TRUE(WithoutFolders(absl::OkStatus(), {}).ok());
}

}  // namespace
}  // namespace wan::server
