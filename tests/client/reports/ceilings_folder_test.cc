#include "client/reports/ceilings_folder.h"

#include <gtest/gtest.h>

namespace wan::client::reports {
namespace {

TEST(CeilingsFolderTest, AFileForEachCard) {
  EXPECT_EQ(KeptCeilingsPath("/data", "NVIDIA H200"), "/data/wanserve/ceilings/NVIDIA-H200.json");
  EXPECT_EQ(KeptCeilingsPath("/data", "Intel(R) Xeon(R) CPU @ 2.20GHz"),
            "/data/wanserve/ceilings/Intel-R-Xeon-R-CPU-2.20GHz.json");
  EXPECT_EQ(KeptCeilingsPath("/data", "../../etc/passwd"),
            "/data/wanserve/ceilings/..-..-etc-passwd.json");
  EXPECT_EQ(KeptCeilingsPath("/data", ""), "");
  EXPECT_EQ(KeptCeilingsPath("", "NVIDIA H200"), "");
}

TEST(CeilingsFolderTest, TheFolderOfTheUsersData) {
  const auto with = [](const char* data, const char* home) {
    setenv("XDG_DATA_HOME", data, 1);
    setenv("HOME", home, 1);
    return DataHome();
  };
  EXPECT_EQ(with("/x", "/home/a"), "/x");
  EXPECT_EQ(with("", "/home/a"), "/home/a/.local/share");
  EXPECT_EQ(with("relative", "/home/a"), "/home/a/.local/share");
  EXPECT_EQ(with("", ""), "");
}

}  // namespace
}  // namespace wan::client::reports
