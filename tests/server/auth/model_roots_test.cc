#include "server/auth/model_roots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "tests/server/auth/temporary_folder.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

class ModelRootsTest : public ::testing::Test {
 protected:
  ModelRootsTest() {
    fs::create_directories(folder_.Path("models/m/vae"));
    fs::create_directories(folder_.Path("elsewhere/m"));
    folder_.Write("models/m/model.safetensors", "x");
    folder_.Write("models/lora.safetensors", "x");
    folder_.Write("elsewhere/secret", "x");
  }

  // What Resolve says of a checkpoint's path; empty: nothing.
  std::string Problem(const std::string& path) const {
    const auto resolved = roots_.Resolve({"m", path});
    if (resolved.ok()) return "";
    EXPECT_TRUE(absl::IsInvalidArgument(resolved.status())) << path;
    return FieldViolationsOf(resolved.status()).at(0).description;
  }

  static ModelSpec WithLora(const std::string& path, const std::string& lora) {
    ModelSpec spec{"m", path};
    spec.loras.emplace_back();
    spec.loras.back().name = "l";
    spec.loras.back().path = lora;
    return spec;
  }

  TemporaryFolder folder_;
  ModelRoots roots_{{folder_.Path("models")}};
};

TEST_F(ModelRootsTest, WhatLiesBelowIsResolved) {
  fs::create_directory_symlink("m", folder_.Path("models/current"));
  const auto resolved = roots_.Resolve(
      WithLora(folder_.Path("models/current/../current"), folder_.Path("models/lora.safetensors")));
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->path, fs::canonical(folder_.Path("models/m")));
  EXPECT_EQ(resolved->loras[0].path, fs::canonical(folder_.Path("models/lora.safetensors")));
  EXPECT_EQ(Problem("synthetic:ti2v-5b"), "");
}

// A model that is put together is as far below the roots as each of its parts.
TEST_F(ModelRootsTest, EveryPartOfAModelIsChecked) {
  const std::string inside = folder_.Path("models/m/model.safetensors");
  const auto resolved = roots_.Resolve(
      {"m", "path=" + folder_.Path("models/./m") + ",vae=" + folder_.Path("models/m/vae")});
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->path, "path=" + fs::canonical(folder_.Path("models/m")).string() +
                                ",vae=" + fs::canonical(folder_.Path("models/m/vae")).string());
  EXPECT_THAT(Problem("transformer=" + inside + ",vae=/etc/passwd"),
              StartsWith("vae: is not below"));
  EXPECT_THAT(roots_.Check({"m", "transformer=/etc/passwd,vae=/etc/passwd"}), SizeIs(2));
  EXPECT_THAT(roots_.Check({"m", "what=/etc/passwd"}), SizeIs(1));
}

// The resolved text is read again, so no real path may contain the name of a part.
TEST_F(ModelRootsTest, ALinkCannotNameAnotherPart) {
  fs::create_directories(folder_.Path("models/x,vae=/etc"));
  folder_.Write("models/x,vae=/etc/passwd", "x");
  fs::create_symlink(folder_.Path("models/x,vae=/etc/passwd"), folder_.Path("models/link"));
  EXPECT_THAT(Problem(folder_.Path("models/link")), HasSubstr("would name other files"));
}

// The shards of an index lie beside it.
TEST_F(ModelRootsTest, TheFolderOfAnIndexIsChecked) {
  folder_.Write("models/m/model.safetensors.index.json", "{}");
  const std::string index = "vae=" + folder_.Path("models/m/model.safetensors.index.json");
  EXPECT_EQ(Problem(index), "");
  fs::create_symlink(folder_.Path("elsewhere/secret"), folder_.Path("models/m/shard.safetensors"));
  EXPECT_THAT(Problem(index), HasSubstr("shard.safetensors, which leads out"));
}

// Other files of its folder concern nobody: an index may lie in a folder of many models, and only
// an index names further files.
TEST_F(ModelRootsTest, BesideAnIndexOnlyShardsAreChecked) {
  folder_.Write("models/m/model.safetensors.index.json", "{}");
  folder_.Write("models/m/config.json", "{}");
  fs::create_symlink(folder_.Path("elsewhere/secret"), folder_.Path("models/m/notes.txt"));
  fs::create_symlink(folder_.Path("elsewhere/secret"), folder_.Path("models/m/vae/x.safetensors"));
  EXPECT_EQ(Problem("vae=" + folder_.Path("models/m/model.safetensors.index.json")), "");
  fs::create_symlink(folder_.Path("elsewhere/secret"), folder_.Path("models/m/shard.safetensors"));
  EXPECT_EQ(Problem("vae=" + folder_.Path("models/m/config.json")), "");
  EXPECT_THAT(Problem("vae=" + folder_.Path("models/m/model.safetensors.index.json")),
              HasSubstr("shard.safetensors, which leads out"));
}

TEST_F(ModelRootsTest, OutsideEveryPathGetsTheSameWords) {
  const std::string outside = Problem("/etc/passwd");
  EXPECT_THAT(outside, HasSubstr("model_roots"));
  for (const std::string& path :
       {std::string("/"), std::string("/etc"), std::string("/nonexistent"), std::string("relative"),
        folder_.Path("models"), folder_.Path("models/../elsewhere/m"), folder_.Path("modelsX/m"),
        folder_.Path("elsewhere/secret"), folder_.Path("elsewhere/missing")}) {
    EXPECT_EQ(Problem(path), outside) << path;
    EXPECT_THAT(roots_.Check({"m", path}), SizeIs(1)) << path;
  }
  EXPECT_THAT(roots_.Check(WithLora(folder_.Path("models/m"), "/etc/passwd")), SizeIs(1));
}

TEST_F(ModelRootsTest, LinksThatLeadOutAreRefused) {
  const std::string outside = Problem("/etc/passwd");
  fs::create_directory_symlink(folder_.Path("elsewhere/m"), folder_.Path("models/out"));
  EXPECT_EQ(Problem(folder_.Path("models/out")), outside);
  fs::create_symlink(folder_.Path("elsewhere/secret"), folder_.Path("models/m/vae/weights"));
  EXPECT_THAT(Problem(folder_.Path("models/m")), HasSubstr("vae/weights, which leads out"));
  fs::remove(folder_.Path("models/m/vae/weights"));
  EXPECT_EQ(Problem(folder_.Path("models/m")), "");
  // As the caches of model hubs lie.
  fs::create_symlink("../../lora.safetensors", folder_.Path("models/m/vae/weights"));
  EXPECT_EQ(Problem(folder_.Path("models/m")), "");
}

TEST_F(ModelRootsTest, OnlyFoldersAndRegularFiles) {
  ASSERT_EQ(mkfifo(folder_.Path("models/pipe").c_str(), 0600), 0);
  EXPECT_THAT(Problem(folder_.Path("models/pipe")), HasSubstr("a folder or a regular file"));
  ASSERT_EQ(mkfifo(folder_.Path("models/m/pipe").c_str(), 0600), 0);
  EXPECT_THAT(Problem(folder_.Path("models/m")), HasSubstr("pipe, which is neither"));
  EXPECT_EQ(Problem(folder_.Path("models/none")), "does not exist");
  fs::create_symlink(folder_.Path("models/gone"), folder_.Path("models/dangling"));
  EXPECT_THAT(Problem(folder_.Path("models/dangling")),
              AllOf(StartsWith("is a link to /"), EndsWith("/models/gone, which does not exist")));
}

TEST_F(ModelRootsTest, NoRootIsNowhereAndNoneSetIsAnywhere) {
  EXPECT_FALSE(
      ModelRoots(std::vector<std::string>()).Resolve({"m", folder_.Path("models/m")}).ok());
  EXPECT_EQ(ModelRoots().Resolve({"m", "/nonexistent"})->path, "/nonexistent");
  EXPECT_TRUE(ModelRoots().Check({"m", "/nonexistent"}).empty());
}

}  // namespace
}  // namespace wan::server
