// wanctl models download, with the script itself and a list of small files.
#include "client/wanctl/model_download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/sha256.h"
#include "tests/client/wanctl/wanctl_fixture.h"

namespace wan::client {
namespace {

namespace fs = std::filesystem;

using fakes::ReadFile;
using fakes::WriteFile;
using ::testing::HasSubstr;

class ModelDownloadTest : public WanctlTest {
 protected:
  // wanctl as it is installed, and a publisher of one model.
  ModelDownloadTest() {
    for (const char* const folder :
         {"bin", "share/wanserve/models", "published/owner/tiny/resolve/abc"}) {
      fs::create_directories(folder_ / folder);
    }
    fs::copy_file(WAN_FETCH_MODEL, folder_ / "bin/wanserve-fetch-model");
    WriteFile(folder_ / "published/owner/tiny/resolve/abc/weights", "the weights");
    WriteList("the weights");
    WriteFile(folder_ / "share/wanserve/models/other.txt", "");
  }

  void WriteList(const std::string& weights) {
    Sha256 hash;
    hash.Update(weights);
    WriteFile(folder_ / "share/wanserve/models/tiny.txt",
              absl::StrCat("repository owner/tiny\nrevision abc\n", weights.size(),
                           " sha256:", hash.Finish(), " weights\n"));
  }

  const std::string base_ = absl::StrCat("file://", (folder_ / "published").string());
};

TEST_F(ModelDownloadTest, FetchesIntoTheDataFolderAndSaysHowToServe) {
  ASSERT_EQ(RunAt({"models", "download", "tiny", "--base", base_}), 0) << err_;
  const fs::path folder = folder_ / "data/wanserve/models/tiny";
  EXPECT_EQ(out_, folder.string() + "\n");
  EXPECT_THAT(err_, HasSubstr("serve it with: wanserve --model tiny=" + folder.string()));
  EXPECT_EQ(ReadFile(folder / "weights"), "the weights");
}

TEST_F(ModelDownloadTest, AFolderMayBeNamedAndDamageIsAnError) {
  WriteList("other weights");
  EXPECT_EQ(RunAt({"models", "download", "tiny", (folder_ / "here").string(), "--base", base_}), 4);
  EXPECT_THAT(err_, HasSubstr("wanserve-fetch-model has failed"));
  EXPECT_EQ(out_, "");
  EXPECT_FALSE(fs::exists(folder_ / "here/weights"));
}

TEST_F(ModelDownloadTest, AWrongNameListsTheRightOnes) {
  EXPECT_EQ(RunAt({"models", "download", "small"}), 2);
  EXPECT_THAT(err_, HasSubstr("NAME: is 'small'; must be one of other, tiny"));
  fs::remove(folder_ / "bin/wanserve-fetch-model");
  EXPECT_EQ(RunAt({"models", "download", "tiny"}), 2);
  EXPECT_THAT(err_, HasSubstr("wanserve-fetch-model is not beside wanctl"));
}

TEST_F(ModelDownloadTest, TheTreeHasTheListsToo) {
  const auto lists = FindModelLists(fs::path(WAN_FETCH_MODEL).parent_path());
  ASSERT_TRUE(lists.ok()) << lists.status();
  EXPECT_THAT(lists->names(), testing::Contains("ti2v-5b"));
}

TEST_F(ModelDownloadTest, CtrlCEndsIt) {
  stop_.request_stop();
  EXPECT_EQ(RunAt({"models", "download", "tiny", "--base", base_}), 5);
}

}  // namespace
}  // namespace wan::client
