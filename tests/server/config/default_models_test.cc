#include "server/config/default_models.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace wan::server {
namespace {

namespace fs = std::filesystem;

class DefaultModelsTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_ / "share" / "wanserve" / "demo"); }
  void TearDown() override { fs::remove_all(root_); }

  const fs::path root_ =
      fs::path(testing::TempDir()) / ("default_models_" + std::to_string(getpid()));
};

TEST_F(DefaultModelsTest, TheDemoModelBesideTheProgramIsServed) {
  const fs::path demo = root_ / "share" / "wanserve" / "demo";
  std::ofstream(demo / "config.json") << "{}";
  const std::vector<ModelSpec> models = DefaultModels(root_ / "bin" / "wanserve");
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models.front().name, "demo");
  EXPECT_EQ(models.front().path, demo.string());
}

TEST_F(DefaultModelsTest, AFolderWithoutACheckpointIsNoModel) {
  EXPECT_TRUE(DefaultModels(root_ / "bin" / "wanserve").empty());
  EXPECT_TRUE(DefaultModels("/nowhere/bin/wanserve").empty());
}

}  // namespace
}  // namespace wan::server
