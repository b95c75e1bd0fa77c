#include "server/store/folder_owner.h"

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using testing::HasSubstr;

TEST(FolderOwnerTest, AFolderOfASqliteFileBelongsToNoOtherDatabase) {
  const TempFolder folder;
  EXPECT_TRUE(BindFolder(folder.path(), "").ok());
  std::ofstream(folder.path() / "jobs.db") << "x";
  EXPECT_TRUE(BindFolder(folder.path(), "").ok());
  const absl::Status refused = BindFolder(folder.path(), "abc");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("its videos belong to the jobs in its file jobs.db"));
}

TEST(FolderOwnerTest, AFolderBelongsToTheFirstDatabaseThatUsesIt) {
  const TempFolder folder;
  EXPECT_TRUE(BindFolder(folder.path(), "abc").ok());
  EXPECT_TRUE(BindFolder(folder.path(), "abc").ok());
  EXPECT_EQ(BindFolder(folder.path(), "abcd").code(), absl::StatusCode::kFailedPrecondition);
  const absl::Status refused = BindFolder(folder.path(), "");
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("set store to the URL of that database"));
}

TEST(FolderOwnerTest, OneServerAtATimeHasTheFolder) {
  const TempFolder folder;
  auto first = LockFolder(folder.path());
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = LockFolder(folder.path());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(folder.path().string() + ": another server uses the folder"));
  first->reset();
  EXPECT_TRUE(LockFolder(folder.path()).ok());
}

}  // namespace
}  // namespace wan::server
