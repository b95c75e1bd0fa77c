#include "server/store/savepoint_store.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;

constexpr char kJob[] = "jobs/a1";
constexpr char kIdentity[] = "abc";

class SavepointStoreTest : public testing::Test {
 protected:
  fs::path File() const { return folder_.path() / "savepoints" / "a1"; }

  std::string Bytes() const {
    std::ifstream file(File(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  void SetBytes(const std::string& bytes) const {
    std::ofstream(File(), std::ios::binary | std::ios::trunc) << bytes;
  }

  TempFolder folder_;
  SavepointStore store_{folder_.path()};
};

TEST_F(SavepointStoreTest, SaysHowManyStepsAreKept) {
  EXPECT_EQ(store_.StepsKept(kJob), 0);
  ASSERT_TRUE(store_.Write(kJob, kIdentity, {3, "three\nlines\n"}).ok());
  EXPECT_EQ(store_.StepsKept(kJob), 3);
  SetBytes("no savepoint");
  EXPECT_EQ(store_.StepsKept(kJob), 0);
}

TEST_F(SavepointStoreTest, SaysWhetherOnlyTheFilesAreOthers) {
  ASSERT_TRUE(store_.Write(kJob, "makers.files", {3, "bytes"}).ok());
  EXPECT_TRUE(store_.Read(kJob, "makers.files").ok());
  const absl::Status files = store_.Read(kJob, "makers.others").status();
  EXPECT_EQ(files.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(files.message()), testing::HasSubstr("the model's files"));
  const absl::Status makers = store_.Read(kJob, "others.files").status();
  EXPECT_EQ(makers.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(makers.message()), testing::HasSubstr("another model, version"));
}

TEST_F(SavepointStoreTest, GivesBackTheLatest) {
  EXPECT_EQ(store_.Read(kJob, kIdentity).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(store_.Write(kJob, kIdentity, {3, "three\nlines\n"}).ok());
  ASSERT_TRUE(store_.Write(kJob, kIdentity, {4, std::string("fo\0ur", 5)}).ok());
  const auto savepoint = store_.Read(kJob, kIdentity);
  ASSERT_TRUE(savepoint.ok()) << savepoint.status();
  EXPECT_EQ(savepoint->steps_done, 4);
  EXPECT_EQ(savepoint->bytes, std::string("fo\0ur", 5));
  store_.Remove(kJob);
  EXPECT_EQ(store_.Read(kJob, kIdentity).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SavepointStoreTest, AnotherIdentityIsNotBelieved) {
  ASSERT_TRUE(store_.Write(kJob, kIdentity, {3, "three"}).ok());
  const absl::Status other = store_.Read(kJob, "abd").status();
  EXPECT_EQ(other.code(), absl::StatusCode::kFailedPrecondition) << other;
}

TEST_F(SavepointStoreTest, NoTornOrChangedFileIsBelieved) {
  ASSERT_TRUE(store_.Write(kJob, kIdentity, {3, "some bytes of latents"}).ok());
  const std::string whole = Bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    SetBytes(whole.substr(0, size));
    EXPECT_EQ(store_.Read(kJob, kIdentity).status().code(), absl::StatusCode::kDataLoss) << size;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    SetBytes(changed);
    EXPECT_FALSE(store_.Read(kJob, kIdentity).ok()) << at;
  }
  SetBytes(whole + "x");
  EXPECT_EQ(store_.Read(kJob, kIdentity).status().code(), absl::StatusCode::kDataLoss);
  SetBytes(whole);
  EXPECT_TRUE(store_.Read(kJob, kIdentity).ok());
}

TEST_F(SavepointStoreTest, WhatCannotBeWrittenLeavesTheOneBefore) {
  ASSERT_TRUE(store_.Write(kJob, kIdentity, {3, "three"}).ok());
  fs::create_directory(File().string() + ".new");  // in the way
  EXPECT_FALSE(store_.Write(kJob, kIdentity, {4, "four"}).ok());
  EXPECT_EQ(store_.Read(kJob, kIdentity)->steps_done, 3);
}

TEST_F(SavepointStoreTest, TheStartRemovesWhatNobodyWillRead) {
  EXPECT_TRUE(store_.RemoveLeftovers([](const std::string&) { return true; }).ok()) << "no folder";
  ASSERT_TRUE(store_.Write(kJob, kIdentity, {3, "three"}).ok());
  ASSERT_TRUE(store_.Write("jobs/b2", kIdentity, {1, "one"}).ok());
  std::ofstream(File().string() + ".new") << "half";
  ASSERT_TRUE(store_.RemoveLeftovers([](const std::string& job) { return job == kJob; }).ok());
  EXPECT_TRUE(store_.Read(kJob, kIdentity).ok());
  EXPECT_FALSE(fs::exists(File().string() + ".new"));
  EXPECT_FALSE(fs::exists(folder_.path() / "savepoints" / "b2"));
}

TEST_F(SavepointStoreTest, WhatALinkLeadsToStays) {
  const fs::path elsewhere = folder_.path() / "elsewhere";
  fs::create_directories(elsewhere / "precious");
  fs::create_directory_symlink(elsewhere, folder_.path() / "savepoints");
  EXPECT_TRUE(
      absl::IsFailedPrecondition(store_.RemoveLeftovers([](const std::string&) { return false; })));
  EXPECT_TRUE(fs::exists(elsewhere / "precious"));
}

}  // namespace
}  // namespace wan::server
