#include "server/store/artifact_store.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr OutputKind kKinds[] = {OutputKind::kMp4, OutputKind::kLatents};

class ArtifactStoreTest : public testing::Test {
 protected:
  ArtifactStoreTest() { EXPECT_TRUE(store_.CheckWritable(0).ok()); }

  std::vector<OutputFile> StageAndWrite(int attempt, const std::string& text) {
    auto outputs = store_.Stage("jobs/a", attempt, kKinds);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    for (const OutputFile& output : *outputs) std::ofstream(output.path) << text;
    return *outputs;
  }

  std::string ReadAll(const std::string& name, uint64_t offset = 0) {
    auto reader = store_.OpenForReading(name, 1, offset);
    EXPECT_TRUE(reader.ok()) << reader.status();
    return reader.ok() ? *reader->Read(1000) : "";
  }

  TempFolder folder_;
  const fs::path root_ = folder_.path() / "data";
  ArtifactStore store_ = ArtifactStore(root_);
};

TEST_F(ArtifactStoreTest, PublishesAllFilesWithTheirFacts) {
  const auto outputs = StageAndWrite(1, "abc");
  EXPECT_FALSE(store_.OpenForReading("jobs/a/artifacts/video.mp4", 1, 0).ok());
  const auto artifacts = store_.Publish("jobs/a", 1, outputs, {});
  ASSERT_TRUE(artifacts.ok()) << artifacts.status();
  ASSERT_EQ(artifacts->size(), 2u);
  const wan::v1::Artifact& video = artifacts->at(0);
  EXPECT_EQ(video.name(), "jobs/a/artifacts/video.mp4");
  EXPECT_EQ(video.kind(), wan::v1::OUTPUT_KIND_MP4);
  EXPECT_EQ(video.size_bytes(), 3);
  // The digest of "abc" in FIPS 180-2.
  EXPECT_EQ(video.sha256(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(video.content_type(), "video/mp4");
  EXPECT_EQ(artifacts->at(1).name(), "jobs/a/artifacts/latents.safetensors");
  EXPECT_EQ(ReadAll("jobs/a/artifacts/video.mp4"), "abc");
  EXPECT_EQ(ReadAll("jobs/a/artifacts/video.mp4", 1), "bc");
  EXPECT_EQ(ReadAll("jobs/a/artifacts/video.mp4", 3), "");
  EXPECT_TRUE(fs::is_empty(root_ / "staging"));
}

TEST_F(ArtifactStoreTest, DigestOfAFileOfManyBlocks) {
  const auto outputs = StageAndWrite(1, std::string(5'000'000, 'x'));
  const auto artifacts = store_.Publish("jobs/a", 1, outputs, {});
  ASSERT_TRUE(artifacts.ok());
  EXPECT_EQ(artifacts->at(0).size_bytes(), 5'000'000);
  EXPECT_EQ(artifacts->at(0).sha256(),
            "03a7bd518f3e4ecac11f2e77f7437928ba5d80ac0b2b26a523d90e7628bfd59b");
}

TEST_F(ArtifactStoreTest, MissingFileIsNamedAndNothingIsPublished) {
  auto outputs = StageAndWrite(1, "abc");
  fs::remove(outputs[1].path);
  const auto artifacts = store_.Publish("jobs/a", 1, outputs, {});
  EXPECT_EQ(artifacts.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(artifacts.status().message()), HasSubstr("latents.safetensors"));
  EXPECT_TRUE(fs::is_empty(root_ / "artifacts"));
}

TEST_F(ArtifactStoreTest, LaterAttemptReplacesWhatAnEarlierLeft) {
  ASSERT_TRUE(store_.Publish("jobs/a", 1, StageAndWrite(1, "one"), {}).ok());
  ASSERT_TRUE(store_.Publish("jobs/a", 2, StageAndWrite(2, "two"), {}).ok());
  EXPECT_EQ(ReadAll("jobs/a/artifacts/video.mp4"), "two");
}

TEST_F(ArtifactStoreTest, StagingStartsEmptyAndCanBeDiscarded) {
  const auto outputs = StageAndWrite(1, "half");
  const fs::path staging = fs::path(outputs[0].path).parent_path();
  ASSERT_TRUE(store_.Stage("jobs/a", 1, kKinds).ok());
  EXPECT_TRUE(fs::is_empty(staging));
  store_.Discard("jobs/a", 1);
  EXPECT_FALSE(fs::exists(staging));
  store_.Discard("jobs/a", 1);  // nothing there
}

TEST_F(ArtifactStoreTest, LeftoversGo) {
  ASSERT_TRUE(store_.Publish("jobs/a", 1, StageAndWrite(1, "done"), {}).ok());
  fs::create_directory(root_ / "artifacts" / "b");
  StageAndWrite(2, "half");
  ASSERT_TRUE(store_.EmptyStaging().ok());
  std::vector<std::string> asked;
  ASSERT_TRUE(store_
                  .RemoveLeftovers([&](const std::string& job) {
                    asked.push_back(job);
                    return ArtifactStore::Kept{.any = job == "jobs/a", .but = {"other.mp4"}};
                  })
                  .ok());
  EXPECT_THAT(asked, testing::UnorderedElementsAre("jobs/a", "jobs/b"));
  EXPECT_TRUE(fs::is_empty(root_ / "staging"));
  EXPECT_FALSE(fs::exists(root_ / "artifacts" / "b"));
  EXPECT_EQ(ReadAll("jobs/a/artifacts/video.mp4"), "done");
  ASSERT_TRUE(store_
                  .RemoveLeftovers(
                      [](const std::string&) { return ArtifactStore::Kept{.but = {"video.mp4"}}; })
                  .ok());
  EXPECT_TRUE(fs::exists(root_ / "artifacts" / "a"));
  EXPECT_FALSE(fs::exists(root_ / "artifacts" / "a" / "video.mp4"));
  ASSERT_TRUE(store_.Remove("jobs/a").ok());
  EXPECT_TRUE(fs::is_empty(root_ / "artifacts"));
  EXPECT_TRUE(store_.Remove("jobs/a").ok()) << "nothing is there";
}

TEST_F(ArtifactStoreTest, TheSearchForLeftoversCanBeStopped) {
  ASSERT_TRUE(store_.RemoveLeftovers([](const std::string&) { return std::nullopt; }).ok());
  fs::create_directories(root_ / "artifacts" / "a");
  fs::create_directories(root_ / "artifacts" / "b");
  int asked = 0;
  ASSERT_TRUE(store_
                  .RemoveLeftovers([&](const std::string&) -> std::optional<ArtifactStore::Kept> {
                    if (++asked == 2) return std::nullopt;
                    return ArtifactStore::Kept{.any = false};
                  })
                  .ok());
  EXPECT_EQ(asked, 2);
  EXPECT_NE(fs::exists(root_ / "artifacts" / "a"), fs::exists(root_ / "artifacts" / "b"));
}

TEST_F(ArtifactStoreTest, AStagingFolderThatIsALinkIsNotEmptied) {
  const fs::path elsewhere = root_ / "elsewhere";
  fs::create_directories(elsewhere / "precious");
  fs::remove_all(root_ / "staging");
  fs::create_directory_symlink(elsewhere, root_ / "staging");
  for (const absl::Status& refused : {store_.EmptyStaging(), store_.CheckWritable(0)}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_EQ(ReasonOf(refused), kReasonStorageUnavailable);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("staging is a link"));
  }
  EXPECT_TRUE(fs::exists(elsewhere / "precious"));
  fs::remove(root_ / "staging");
  EXPECT_TRUE(store_.CheckWritable(0).ok());
}

TEST_F(ArtifactStoreTest, ReadersShareAFileUntilAnotherTakesItsPlace) {
  const auto open_descriptors = [] {
    const fs::directory_iterator descriptors("/proc/self/fd");
    return std::distance(fs::begin(descriptors), fs::end(descriptors));
  };
  ASSERT_TRUE(store_.Publish("jobs/a", 1, StageAndWrite(1, "one"), {}).ok());
  const auto before = open_descriptors();
  std::vector<ArtifactReader> readers;
  for (int i = 0; i < 100; ++i) {
    auto reader = store_.OpenForReading("jobs/a/artifacts/video.mp4", 1, 1);
    ASSERT_TRUE(reader.ok());
    readers.push_back(*std::move(reader));
  }
  EXPECT_TRUE(store_.InUse("jobs/a"));
  EXPECT_FALSE(store_.InUse("jobs/b"));
  EXPECT_EQ(open_descriptors(), before + 1);
  ASSERT_TRUE(store_.Publish("jobs/a", 2, StageAndWrite(2, "two"), {}).ok());
  EXPECT_EQ(ReadAll("jobs/a/artifacts/video.mp4"), "two");
  // Each reader has a place of its own, in the file that it began with.
  for (ArtifactReader& reader : readers) EXPECT_EQ(*reader.Read(10), "ne");
  readers.clear();
  EXPECT_FALSE(store_.InUse("jobs/a"));
  EXPECT_EQ(open_descriptors(), before);
}

TEST_F(ArtifactStoreTest, ReadingErrors) {
  ASSERT_TRUE(store_.Publish("jobs/a", 1, StageAndWrite(1, "abc"), {}).ok());
  EXPECT_EQ(store_.OpenForReading("jobs/a/artifacts/video.mp4", 1, 4).status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ReasonOf(store_.OpenForReading("jobs/a/artifacts/video.mkv", 1, 0).status()),
            kReasonArtifactNotFound);
  EXPECT_EQ(store_.OpenForReading("jobs/a/artifacts/../../x", 1, 0).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ArtifactStoreTest, AFolderThatCannotBeMadeIsNamed) {
  std::ofstream(folder_.path() / "file") << "x";
  const absl::Status status = ArtifactStore(folder_.path() / "file").CheckWritable(0);
  EXPECT_EQ(ReasonOf(status), kReasonStorageUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("file"));
}

TEST_F(ArtifactStoreTest, SaysWhetherThereIsRoom) {
  EXPECT_TRUE(store_.CheckWritable(0).ok());
  const absl::Status status = store_.CheckWritable(~uint64_t{0});
  EXPECT_EQ(ReasonOf(status), kReasonStorageUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("bytes free"));
  EXPECT_TRUE(std::filesystem::is_empty(root_ / "staging"));
}

}  // namespace
}  // namespace wan::server
