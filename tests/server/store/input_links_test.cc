#include "server/store/input_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "server/store/digest.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;

constexpr char kMaker[] = "jobs/0123456789abcdef";
constexpr char kJob[] = "jobs/fedcba9876543210";
constexpr char kArtifact[] = "jobs/0123456789abcdef/artifacts/latents.safetensors";

class InputLinksTest : public ::testing::Test {
 protected:
  InputLinksTest() {
    fs::remove_all(root_);
    fs::create_directories(artifact_.parent_path());
    std::ofstream(artifact_) << "latents";
  }

  static wan::v1::Job Job(const std::string& file) {
    wan::v1::Job job;
    job.set_name(kJob);
    job.mutable_request()->mutable_latents()->set_job(kMaker);
    job.mutable_request()->mutable_latents()->set_sha256(Sha256Hex(file));
    return job;
  }

  JobInputs Added() {
    JobInputs inputs;
    inputs.artifacts.emplace("latents", kArtifact);
    links_.Add(kJob, inputs);
    EXPECT_TRUE(inputs.artifacts.empty() || links_.Sync().ok());
    return inputs;
  }

  const fs::path root_ = fs::path(::testing::TempDir()) / "input_links_test";
  const fs::path artifact_ = root_ / "artifacts" / "0123456789abcdef" / "latents.safetensors";
  const InputLinks links_{root_};
};

TEST_F(InputLinksTest, AFileOutlivesItsArtifactUntilItIsRemoved) {
  EXPECT_EQ(Added().artifacts.size(), 1u);
  fs::remove_all(artifact_.parent_path());
  JobInputs inputs;
  ASSERT_TRUE(links_.Complete(Job("latents"), inputs).ok());
  ASSERT_NE(inputs.latents, nullptr);
  EXPECT_EQ(*inputs.latents, "latents");
  EXPECT_TRUE(inputs.artifacts.contains("latents")) << "a repaired database needs no copy either";
  links_.Remove(kJob);
  JobInputs none;
  ASSERT_TRUE(links_.Complete(Job("latents"), none).ok());
  EXPECT_EQ(none.latents, nullptr);
}

TEST_F(InputLinksTest, AFileWithAnotherDigestIsLeftOut) {
  Added();
  JobInputs inputs;
  ASSERT_TRUE(links_.Complete(Job("other latents"), inputs).ok());
  EXPECT_EQ(inputs.latents, nullptr);
}

TEST_F(InputLinksTest, WhatCannotBeLinkedIsLeftToTheDatabase) {
  fs::remove(artifact_);
  EXPECT_TRUE(Added().artifacts.empty());
}

TEST_F(InputLinksTest, LinksThatCannotBeSyncedAreToldOf) {
  Added();
  fs::remove_all(root_ / "inputs");
  EXPECT_FALSE(links_.Sync().ok());
}

TEST_F(InputLinksTest, FilesOfOtherJobsAreLeftovers) {
  Added();
  std::ofstream(root_ / "inputs" / "strange") << "x";
  ASSERT_TRUE(links_.RemoveLeftovers([](const std::string& job) { return job == kJob; }).ok());
  EXPECT_TRUE(fs::exists(root_ / "inputs" / "fedcba9876543210.latents"));
  EXPECT_FALSE(fs::exists(root_ / "inputs" / "strange"));
  ASSERT_TRUE(links_.RemoveLeftovers([](const std::string&) { return false; }).ok());
  EXPECT_TRUE(fs::is_empty(root_ / "inputs"));
}

}  // namespace
}  // namespace wan::server
