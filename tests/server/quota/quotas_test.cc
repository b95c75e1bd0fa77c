#include "server/quota/quotas.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class QuotasTest : public testing::Test {
 protected:
  QuotasTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "wan_quotas_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = folder_ + "/quotas";
  }
  ~QuotasTest() override { std::filesystem::remove_all(folder_); }

  // Another file in its place, so that no clock's resolution hides the change.
  void Write(const std::string& text) {
    std::ofstream(path_ + ".new") << text;
    std::filesystem::rename(path_ + ".new", path_);
  }
  absl::StatusOr<std::unique_ptr<Quotas>> Open() {
    return Quotas::Open(path_, {[this] { ++changes_; },
                                [this](const absl::Status& problem) {
                                  problems_.emplace_back(problem.message());
                                }});
  }

  std::string folder_;
  std::string path_;
  int changes_ = 0;
  std::vector<std::string> problems_;
};

TEST_F(QuotasTest, WithoutAFileNothingIsLimited) {
  Quotas quotas;
  quotas.Refresh();
  EXPECT_FALSE(quotas.Of("alice").has_queued_jobs());
}

TEST_F(QuotasTest, AFileThatCannotBeUsedEndsTheStart) {
  const auto missing = Open();
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("quotas: " + path_));
  Write("alice");
  EXPECT_EQ(Open().status().code(), absl::StatusCode::kInvalidArgument);
  Write("alice: unlimited");
  chmod(path_.c_str(), 0666);
  EXPECT_THAT(std::string(Open().status().message()), HasSubstr("lift their own quotas"));
}

TEST_F(QuotasTest, AChangedFileHoldsFromTheNextLookOn) {
  Write("alice: queued_jobs=1");
  const auto quotas = Open();
  ASSERT_TRUE(quotas.ok()) << quotas.status();
  (*quotas)->Refresh();
  EXPECT_EQ(changes_, 0);
  Write("alice: queued_jobs=2");
  EXPECT_EQ((*quotas)->Of("alice").queued_jobs(), 1);
  (*quotas)->Refresh();
  EXPECT_EQ((*quotas)->Of("alice").queued_jobs(), 2);
  EXPECT_EQ(changes_, 1);
}

TEST_F(QuotasTest, AChangedFileThatCannotBeUsedIsToldOnceAndChangesNothing) {
  Write("alice: queued_jobs=1");
  const auto quotas = Open();
  ASSERT_TRUE(quotas.ok()) << quotas.status();
  Write("alice: queued_jobs=many");
  (*quotas)->Refresh();
  (*quotas)->Refresh();
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("the quotas stay as they were")));
  EXPECT_EQ((*quotas)->Of("alice").queued_jobs(), 1);
  std::filesystem::remove(path_);
  (*quotas)->Refresh();
  EXPECT_EQ(problems_.size(), 2);
  EXPECT_EQ((*quotas)->Of("alice").queued_jobs(), 1);
  EXPECT_EQ(changes_, 0);
}

TEST_F(QuotasTest, AReloadSaysWhetherTheFileCanBeUsed) {
  EXPECT_TRUE(Quotas().Reload().ok()) << "there is no file";
  Write("alice: queued_jobs=1");
  const auto quotas = Open();
  ASSERT_TRUE(quotas.ok()) << quotas.status();
  Write("alice: queued_jobs=2");
  EXPECT_TRUE((*quotas)->Reload().ok());
  EXPECT_EQ((*quotas)->Of("alice").queued_jobs(), 2);
  EXPECT_EQ(changes_, 1);
  Write("alice: queued_jobs=many");
  EXPECT_THAT(std::string((*quotas)->Reload().message()), HasSubstr("stay as they were"));
  EXPECT_EQ((*quotas)->Of("alice").queued_jobs(), 2);
  EXPECT_THAT(problems_, testing::IsEmpty()) << "who has asked for it is told";
}

}  // namespace
}  // namespace wan::server
