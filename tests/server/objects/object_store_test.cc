// What every ObjectStore promises, on a folder and on moto.
#include "server/objects/object_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "engine/api/clock.h"
#include "server/objects/s3_object_store.h"
#include "server/store/folder_object_store.h"
#include "tests/support/moto_server.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ObjectCall kCall{absl::Seconds(20), {}};

std::string Variable(const char* name) {
  return std::string(name).starts_with("AWS_") ? "value" : "";
}

// The bucket's server starts once, because Python takes a second; each test has its own prefix.
support::MotoServer& Moto() {
  static auto* const server = new support::MotoServer();
  return *server;
}

std::unique_ptr<ObjectStore> OpenS3(const std::string& prefix, uint64_t part_bytes,
                                    const OnObjectRequest& on_request) {
  const auto place = ParseObjectPlace(Moto().Place(prefix));
  auto options = S3OptionsOf(std::get<S3Place>(*place), "", &Variable, on_request);
  return std::make_unique<S3ObjectStore>(*options, std::get<S3Place>(*place).prefix, SystemClock(),
                                         part_bytes);
}

class ObjectStoreTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "objects");
    if (GetParam() == "folder") {
      store_ = std::make_unique<FolderObjectStore>(folder_ / "objects");
    } else if (support::MotoServer::IsThere()) {
      store_ = OpenS3("test" + std::to_string(number_++), uint64_t{5} << 20,
                      [this](const ObjectRequest& request) { requests_.push_back(request); });
    } else {
      FAIL() << "moto is missing; run scripts/setup, which fetches it";
    }
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Bytes(const std::string& key, const ObjectRange& range = {}) {
    std::string bytes;
    const absl::Status status = store_->Get(
        key, range,
        [&](std::string_view piece) {
          bytes.append(piece);
          return absl::OkStatus();
        },
        kCall);
    return status.ok() ? bytes : std::string(absl::StatusCodeToString(status.code()));
  }
  std::vector<std::string> Keys(const std::string& prefix) {
    std::vector<std::string> keys;
    const absl::Status listed = store_->List(
        prefix,
        [&](const ObjectFacts& object) {
          keys.push_back(object.key);
          return true;
        },
        kCall);
    EXPECT_TRUE(listed.ok()) << listed;
    return keys;
  }
  std::filesystem::path File(const std::string& bytes) {
    std::filesystem::path path = folder_ / "file";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  static inline int number_ = 0;
  const std::filesystem::path folder_ =
      testing::TempDir() + "object_store_" + std::to_string(getpid());
  std::vector<ObjectRequest> requests_;
  std::unique_ptr<ObjectStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Stores, ObjectStoreTest, testing::Values("folder", "s3"),
                         [](const auto& store) { return store.param; });

TEST_P(ObjectStoreTest, GivesBackWhatWasPut) {
  ASSERT_TRUE(store_->Put("artifacts/a/1/video.mp4", "some bytes", kCall).ok());
  EXPECT_EQ(Bytes("artifacts/a/1/video.mp4"), "some bytes");
  const auto facts = store_->Stat("artifacts/a/1/video.mp4", kCall);
  ASSERT_TRUE(facts.ok()) << facts.status();
  EXPECT_EQ(facts->size, 10U);
  ASSERT_TRUE(store_->Put("artifacts/a/1/video.mp4", "others", kCall).ok());
  EXPECT_EQ(Bytes("artifacts/a/1/video.mp4"), "others");
  ASSERT_TRUE(store_->Put("empty", "", kCall).ok());
  EXPECT_EQ(Bytes("empty"), "");
}

TEST_P(ObjectStoreTest, GivesRanges) {
  ASSERT_TRUE(store_->Put("k", "0123456789", kCall).ok());
  EXPECT_EQ(Bytes("k", {4, 3}), "456");
  EXPECT_EQ(Bytes("k", {4}), "456789");
  EXPECT_EQ(Bytes("k", {8, 100}), "89");
  EXPECT_EQ(Bytes("k", {0, 1}), "0");
  EXPECT_EQ(Bytes("k", {3, 0}), "");
  EXPECT_EQ(Bytes("k", {11, 1}), "OUT_OF_RANGE");
}

TEST_P(ObjectStoreTest, FilesOfOneAndOfManyParts) {
  std::string bytes(size_t{11} << 20, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 31 >> 7);
  for (const size_t size : {size_t{0}, size_t{100}, size_t{5} << 20, bytes.size()}) {
    ASSERT_TRUE(store_->PutFile("big", File(bytes.substr(0, size)), kCall).ok());
    EXPECT_TRUE(Bytes("big") == bytes.substr(0, size)) << size;
  }
  EXPECT_TRUE(Bytes("big", {bytes.size() - 7, 100}) == bytes.substr(bytes.size() - 7));
  EXPECT_TRUE(absl::IsNotFound(store_->PutFile("none", folder_ / "missing", kCall)));
}

TEST_P(ObjectStoreTest, WhatIsNotThere) {
  EXPECT_EQ(Bytes("none"), "NOT_FOUND");
  EXPECT_TRUE(absl::IsNotFound(store_->Stat("none/below", kCall).status()));
  EXPECT_TRUE(store_->Remove("none", kCall).ok());
  EXPECT_TRUE(store_->RemovePrefix("none/", kCall).ok());
  EXPECT_THAT(Keys("none/"), IsEmpty());
}

TEST_P(ObjectStoreTest, ListsAndRemovesByPrefix) {
  for (const char* const key : {"a/2/y", "a/1/x", "a/10/z", "ab", "b/1"}) {
    ASSERT_TRUE(store_->Put(key, key, kCall).ok());
  }
  EXPECT_THAT(Keys("a/"), ElementsAre("a/1/x", "a/10/z", "a/2/y"));
  EXPECT_THAT(Keys("a"), ElementsAre("a/1/x", "a/10/z", "a/2/y", "ab"));
  EXPECT_TRUE(store_->Remove("a/2/y", kCall).ok());
  EXPECT_TRUE(store_->RemovePrefix("a/1", kCall).ok());
  EXPECT_THAT(Keys(""), ElementsAre("ab", "b/1"));
  EXPECT_EQ(Bytes("a/2/y"), "NOT_FOUND");
}

TEST_P(ObjectStoreTest, AVisitCanEndAListing) {
  for (const char* const key : {"a", "b", "c"}) ASSERT_TRUE(store_->Put(key, key, kCall).ok());
  int visits = 0;
  EXPECT_TRUE(store_
                  ->List(
                      "", [&](const ObjectFacts&) { return ++visits < 2; }, kCall)
                  .ok());
  EXPECT_EQ(visits, 2);
}

TEST_P(ObjectStoreTest, RefusesKeysThatAreNone) {
  for (const char* const key : {"", "/a", "a/", "a//b", "../a", "a/./b", "a b", "a?b", "ü"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(store_->Put(key, "x", kCall))) << key;
    EXPECT_TRUE(absl::IsInvalidArgument(store_->Stat(key, kCall).status())) << key;
    EXPECT_TRUE(absl::IsInvalidArgument(store_->Remove(key, kCall))) << key;
    EXPECT_EQ(Bytes(key), "INVALID_ARGUMENT") << key;
  }
}

TEST_P(ObjectStoreTest, AnErrorOfTheSinkEndsTheRead) {
  ASSERT_TRUE(store_->Put("k", "0123456789", kCall).ok());
  const absl::Status status = store_->Get(
      "k", {}, [](std::string_view) { return absl::AbortedError("enough"); }, kCall);
  EXPECT_TRUE(absl::IsAborted(status)) << status;
  EXPECT_EQ(*store_->Read("k", 10, kCall), "0123456789");
  EXPECT_TRUE(absl::IsOutOfRange(store_->Read("k", 9, kCall).status()));
}

TEST_P(ObjectStoreTest, ManyThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this, i] {
      const std::string key = "many/" + std::to_string(i);
      EXPECT_TRUE(store_->Put(key, key, kCall).ok());
      EXPECT_EQ(Bytes(key), key);
      EXPECT_TRUE(store_->Remove(key, kCall).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(Keys("many/"), IsEmpty());
}

// Only of a folder.
TEST(FolderStoreTest, AFolderThatIsMissingIsAway) {
  const std::filesystem::path folder =
      testing::TempDir() + "folder_store_" + std::to_string(getpid());
  FolderObjectStore store(folder);  // for example a share that is not mounted
  const absl::Status put = store.Put("a/b", "x", kCall);
  EXPECT_TRUE(absl::IsUnavailable(put)) << put;
  EXPECT_THAT(std::string(put.message()), HasSubstr("make the folder, or mount it"));
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_TRUE(absl::IsUnavailable(store.Stat("a/b", kCall).status()));
  EXPECT_TRUE(absl::IsUnavailable(store.Remove("a/b", kCall)));
  EXPECT_TRUE(absl::IsUnavailable(store.RemovePrefix("a/", kCall)));
  std::filesystem::create_directory(folder);
  EXPECT_TRUE(absl::IsNotFound(store.Stat("a/b", kCall).status()));
  EXPECT_TRUE(store.Put("a/b", "x", kCall).ok());
  std::filesystem::remove_all(folder);
}

// A process that dies while it writes an object leaves KEY.new.
TEST(FolderStoreTest, UnfinishedFilesGo) {
  const std::filesystem::path folder =
      testing::TempDir() + "folder_store_" + std::to_string(getpid());
  FolderObjectStore store(folder / "objects/");
  const auto leave = [&](const std::string& key) {
    std::filesystem::path path = folder / "objects" / (key + ".new");
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "x";
    return path;
  };
  const std::filesystem::path savepoint = leave("savepoints/a");
  EXPECT_TRUE(store.Remove("savepoints/a", kCall).ok());
  EXPECT_FALSE(std::filesystem::exists(savepoint.parent_path()));
  const std::filesystem::path video = leave("artifacts/a/1/video.mp4");
  ASSERT_TRUE(store.Put("artifacts/a/10/video.mp4", "x", kCall).ok());
  EXPECT_TRUE(store.RemovePrefix("artifacts/a/1/", kCall).ok());
  EXPECT_FALSE(std::filesystem::exists(video.parent_path()));
  EXPECT_TRUE(store.Stat("artifacts/a/10/video.mp4", kCall).ok());
  // A copy that fails, because its place is taken, leaves nothing either.
  std::ofstream(folder / "file") << "x";
  const std::filesystem::path taken = folder / "objects" / "artifacts/a/2";
  std::filesystem::create_directories(taken / "below");
  EXPECT_FALSE(store.PutFile("artifacts/a/2", folder / "file", kCall).ok());
  EXPECT_FALSE(std::filesystem::exists(taken.string() + ".new"));
  // The folder itself stays, and so does what only looks like the prefix.
  EXPECT_TRUE(store.RemovePrefix("artifacts/", kCall).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder / "objects"));
  ASSERT_TRUE(store.Put("a", "x", kCall).ok());
  EXPECT_TRUE(store.RemovePrefix("a/", kCall).ok());
  EXPECT_TRUE(store.RemovePrefix("a/b/", kCall).ok());
  EXPECT_TRUE(store.Remove("a/b", kCall).ok());
  EXPECT_TRUE(store.Stat("a", kCall).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(store.RemovePrefix("../", kCall)));
  EXPECT_TRUE(std::filesystem::exists(folder / "file"));
  std::filesystem::remove_all(folder);
}

// Only of S3.
class S3StoreTest : public ObjectStoreTest {};
INSTANTIATE_TEST_SUITE_P(Stores, S3StoreTest, testing::Values("s3"),
                         [](const auto& store) { return store.param; });

TEST_P(S3StoreTest, ListsOverManyPages) {
  for (int i = 0; i < 1005; ++i) {
    ASSERT_TRUE(store_->Put("p/" + std::to_string(i), "", kCall).ok());
  }
  EXPECT_EQ(Keys("p/").size(), 1005U);
}

TEST_P(S3StoreTest, TellsOfEachRequest) {
  ASSERT_TRUE(store_->Put("k", "0123456789", kCall).ok());
  EXPECT_EQ(Bytes("k", {2, 3}), "234");
  EXPECT_EQ(Bytes("none"), "NOT_FOUND");
  ASSERT_EQ(requests_.size(), 3U);
  EXPECT_EQ(requests_[0].operation, ObjectOperation::kPut);
  EXPECT_EQ(requests_[0].outcome, ObjectOutcome::kOk);
  EXPECT_EQ(requests_[0].sent, 10U);
  EXPECT_EQ(requests_[1].operation, ObjectOperation::kGet);
  EXPECT_EQ(requests_[1].received, 3U);
  EXPECT_EQ(requests_[2].outcome, ObjectOutcome::kNotFound);
}

TEST_P(S3StoreTest, ABucketThatIsMissingIsNamed) {
  auto options =
      S3OptionsOf({"nowhere", "", Moto().endpoint()}, "", &Variable, [](const ObjectRequest&) {});
  S3ObjectStore store(*options, "", SystemClock());
  const absl::Status status = store.Put("k", "x", kCall);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the bucket nowhere does not exist at http://127.0.0.1:"));
}

}  // namespace
}  // namespace wan::server
