#include "server/store/savepoint_store.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "server/store/digest.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;

constexpr char kJob[] = "jobs/a1";
SavepointOrigin Origin() {
  SavepointOrigin origin;
  origin.request = "abc";
  return origin;
}

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
  ASSERT_TRUE(store_.Write(kJob, Origin(), {3, "three\nlines\n"}).ok());
  EXPECT_EQ(store_.StepsKept(kJob), 3);
  SetBytes("no savepoint");
  EXPECT_EQ(store_.StepsKept(kJob), 0);
}

TEST_F(SavepointStoreTest, GivesBackWhatItWasMadeFrom) {
  EXPECT_FALSE(store_.OriginOf(kJob).has_value());
  SavepointOrigin origin = Origin();
  origin.provenance.set_libraries("LibTorch 2,\ncuDNN 9");
  origin.provenance.set_batched_guidance(true);
  origin.files = {{"a file\nwith two lines", 3, "key", "digest"}, {"vae/0", 4, "other", ""}};
  ASSERT_TRUE(store_.Write(kJob, origin, {3, "\nbytes"}).ok());
  const auto kept = store_.Read(kJob);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->savepoint.bytes, "\nbytes");
  EXPECT_EQ(kept->origin.request, origin.request);
  EXPECT_EQ(kept->origin.files, origin.files);
  EXPECT_EQ(kept->origin.provenance.SerializeAsString(), origin.provenance.SerializeAsString());
  EXPECT_TRUE(store_.OriginOf(kJob)->provenance.batched_guidance());
  EXPECT_EQ(store_.OriginOf(kJob)->files, origin.files);
}

TEST_F(SavepointStoreTest, OneOfAnEarlierReleaseIsNotRead) {
  ASSERT_TRUE(store_.Write(kJob, Origin(), {3, "bytes"}).ok());
  const std::string described = "makers.files 3\nbytes";
  SetBytes(Sha256Hex(described) + " " + described);
  const absl::Status old = store_.Read(kJob).status();
  EXPECT_EQ(old.code(), absl::StatusCode::kFailedPrecondition) << old;
  EXPECT_THAT(std::string(old.message()), testing::HasSubstr("made by an earlier release"));
  EXPECT_FALSE(store_.OriginOf(kJob).has_value());
  EXPECT_EQ(store_.StepsKept(kJob), 3);
}

TEST_F(SavepointStoreTest, GivesBackTheLatest) {
  EXPECT_EQ(store_.Read(kJob).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(store_.Write(kJob, Origin(), {3, "three\nlines\n"}).ok());
  ASSERT_TRUE(store_.Write(kJob, Origin(), {4, std::string("fo\0ur", 5)}).ok());
  const auto kept = store_.Read(kJob);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->savepoint.steps_done, 4);
  EXPECT_EQ(kept->savepoint.bytes, std::string("fo\0ur", 5));
  store_.Remove(kJob);
  EXPECT_EQ(store_.Read(kJob).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SavepointStoreTest, NoTornOrChangedFileIsBelieved) {
  ASSERT_TRUE(store_.Write(kJob, Origin(), {3, "some bytes of latents"}).ok());
  const std::string whole = Bytes();
  for (size_t size = 0; size < whole.size(); ++size) {
    SetBytes(whole.substr(0, size));
    EXPECT_EQ(store_.Read(kJob).status().code(), absl::StatusCode::kDataLoss) << size;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    SetBytes(changed);
    EXPECT_FALSE(store_.Read(kJob).ok()) << at;
  }
  SetBytes(whole + "x");
  EXPECT_EQ(store_.Read(kJob).status().code(), absl::StatusCode::kDataLoss);
  SetBytes(whole);
  EXPECT_TRUE(store_.Read(kJob).ok());
}

// The savepoint may be good, so nobody may take it for a damaged or a missing one.
TEST_F(SavepointStoreTest, ADiskThatCannotBeReadIsTheStoragesProblem) {
  fs::create_directories(File());  // reading a folder fails
  const absl::Status status = store_.Read(kJob).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(ReasonOf(status), kReasonStorageUnavailable);
}

TEST_F(SavepointStoreTest, WhatCannotBeWrittenLeavesTheOneBefore) {
  ASSERT_TRUE(store_.Write(kJob, Origin(), {3, "three"}).ok());
  fs::create_directory(File().string() + ".new");  // in the way
  EXPECT_FALSE(store_.Write(kJob, Origin(), {4, "four"}).ok());
  EXPECT_EQ(store_.Read(kJob)->savepoint.steps_done, 3);
}

TEST_F(SavepointStoreTest, TheStartRemovesWhatNobodyWillRead) {
  EXPECT_TRUE(store_.RemoveLeftovers([](const std::string&) { return true; }).ok()) << "no folder";
  ASSERT_TRUE(store_.Write(kJob, Origin(), {3, "three"}).ok());
  ASSERT_TRUE(store_.Write("jobs/b2", Origin(), {1, "one"}).ok());
  std::ofstream(File().string() + ".new") << "half";
  ASSERT_TRUE(store_.RemoveLeftovers([](const std::string& job) { return job == kJob; }).ok());
  EXPECT_TRUE(store_.Read(kJob).ok());
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
