// Digests of model files: computed once, remembered, and of the file that was loaded.
#include "server/store/file_digests.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/uio.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/digest.h"
#include "server/store/durable_file.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FileDigestsTest : public testing::Test {
 protected:
  FileDigestsTest() { Open(); }

  void Open() {
    digests_.reset();
    digests_ = std::make_unique<FileDigests>(Kept(), [this](const absl::Status& problem) {
      absl::MutexLock lock(&mutex_);
      problems_.emplace_back(problem.message());
    });
  }

  fs::path Kept() const { return folder_.path() / "model_digests"; }

  ModelFile Write(const std::string& name, const std::string& bytes) const {
    const fs::path path = folder_.path() / name;
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    return Now(name);
  }
  ModelFile Now(const std::string& name) const {
    const std::string path = (folder_.path() / name).string();
    return {name, path, FileVersion::Of(path).value()};
  }
  // The digest of a file, once it is known; nothing if there will be none.
  std::optional<std::string> Digest(const ModelFile& file) {
    digests_->Want({file});
    digests_->AwaitIdle();
    return digests_->Find(FileDigests::KeyOf(file));
  }
  std::vector<std::string> problems() const {
    absl::MutexLock lock(&mutex_);
    return problems_;
  }

  TempFolder folder_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> problems_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<FileDigests> digests_;
};

TEST_F(FileDigestsTest, AreThoseOfTheWholeFile) {
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) absl::StrAppend(&bytes, i);
  EXPECT_EQ(Digest(Write("many pieces", bytes)), Sha256Hex(bytes));
  EXPECT_EQ(Digest(Write("empty", "")), Sha256Hex(""));
  EXPECT_THAT(problems(), IsEmpty());
}

TEST_F(FileDigestsTest, ARestartReadsNothingAgain) {
  const ModelFile file = Write("weights", "one");
  ASSERT_TRUE(Digest(file).has_value());
  fs::remove(file.path);
  Open();
  EXPECT_EQ(digests_->Find(FileDigests::KeyOf(file)), Sha256Hex("one")) << "nobody has wanted it";
  EXPECT_EQ(Digest(file), Sha256Hex("one"));
  EXPECT_THAT(problems(), IsEmpty()) << "the file was looked at";
}

TEST_F(FileDigestsTest, AFileThatChangesBeforeItIsReadHasNone) {
  const ModelFile longer = Write("longer", "one");
  const ModelFile later = Write("later", "one");
  const ModelFile exchanged = Write("exchanged", "one");
  const ModelFile gone = Write("gone", "one");
  digests_->Pause();
  digests_->Want({longer, later, exchanged, gone});
  Write("longer", "one and more");
  const auto time = fs::last_write_time(later.path);
  Write("later", "two");
  fs::last_write_time(later.path, time + std::chrono::nanoseconds(1'000'000));
  Write("other", "one");
  fs::last_write_time(folder_.path() / "other", fs::last_write_time(exchanged.path));
  fs::rename(folder_.path() / "other", exchanged.path);
  fs::remove(gone.path);
  digests_->Resume();
  digests_->AwaitIdle();
  for (const ModelFile& file : {longer, later, exchanged, gone}) {
    EXPECT_EQ(digests_->Find(FileDigests::KeyOf(file)), std::nullopt) << file.name;
  }
  EXPECT_THAT(problems(), ElementsAre(HasSubstr(longer.path + " has changed since"),
                                      HasSubstr(later.path + " has changed since"),
                                      HasSubstr(exchanged.path + " has changed since"),
                                      HasSubstr(gone.path + " has changed since")));
}

TEST_F(FileDigestsTest, NothingIsReadWhileAModelIsLoaded) {
  const ModelFile file = Write("weights", "one");
  digests_->Pause();
  digests_->Pause();
  EXPECT_EQ(Digest(file), std::nullopt);
  digests_->Resume();
  EXPECT_EQ(Digest(file), std::nullopt) << "another load goes on";
  digests_->Resume();
  EXPECT_EQ(Digest(file), Sha256Hex("one"));
}

TEST_F(FileDigestsTest, WhoeverNeedsADigestNowReadsTheFileHimself) {
  const ModelFile file = Write("weights", "one");
  digests_->Pause();
  EXPECT_EQ(digests_->Learn(file, {}).value_or(""), Sha256Hex("one"));
  EXPECT_EQ(digests_->Find(FileDigests::KeyOf(file)), Sha256Hex("one"));
  fs::remove(file.path);
  Open();
  EXPECT_EQ(digests_->Learn(file, {}).value_or(""), Sha256Hex("one")) << "it was kept";
  const ModelFile changed = Write("changed", "one");
  Write("changed", "one and more");
  EXPECT_TRUE(absl::IsFailedPrecondition(digests_->Learn(changed, {}).status()));
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(digests_->Learn(Write("b", "two"), stop.get_token()).status()));
}

TEST_F(FileDigestsTest, AVeryLargeFileDelaysNoStop) {
  const fs::path path = folder_.path() / "large";
  std::ofstream(path) << "x";
  std::error_code error;
  fs::resize_file(path, uintmax_t{1} << 40, error);  // a hole that would take minutes to read
  if (error) GTEST_SKIP() << "this file system has no files of 1 TiB: " << error.message();
  digests_->Want({Now("large")});
  const auto begin = std::chrono::steady_clock::now();
  digests_.reset();
  // Far less than the reading takes, and more than a loaded machine delays a thread.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(FileDigestsTest, AStopEndsTheWorkAlsoWhileItIsPaused) {
  digests_->Pause();
  digests_->Want({Write("weights", "one")});
  digests_->Stop();
  digests_->AwaitIdle();
  digests_.reset();
}

TEST_F(FileDigestsTest, ADamagedListIsNotBelieved) {
  const ModelFile file = Write("weights", "one");
  ASSERT_TRUE(Digest(file).has_value());
  std::fstream list(Kept(), std::ios::in | std::ios::out | std::ios::binary);
  list.seekp(-10, std::ios::end);  // inside the digest
  const char digit = static_cast<char>(list.peek() == 'a' ? 'b' : 'a');
  list.put(digit);
  list.close();
  Open();
  EXPECT_EQ(digests_->Find(FileDigests::KeyOf(file)), std::nullopt);
  EXPECT_EQ(Digest(file), Sha256Hex("one")) << "computed again";
}

TEST_F(FileDigestsTest, AListThatAppearsLaterIsTakenOver) {
  const ModelFile before = Write("before", "one");
  ASSERT_TRUE(Digest(before).has_value());
  fs::rename(Kept(), folder_.path() / "not mounted");
  Open();
  fs::rename(folder_.path() / "not mounted", Kept());
  ASSERT_TRUE(Digest(Write("after", "two")).has_value());
  EXPECT_TRUE(digests_->Find(FileDigests::KeyOf(before)).has_value());
  Open();
  EXPECT_TRUE(digests_->Find(FileDigests::KeyOf(before)).has_value()) << "it is written with them";
}

TEST_F(FileDigestsTest, OfTooManyTheOldestAreForgotten) {
  std::string lines;
  std::vector<std::string> keys;
  for (size_t i = 0; i < kMaxFileDigests; ++i) {
    keys.push_back(Sha256Hex(absl::StrCat(i)));
    absl::StrAppend(&lines, keys.back(), " ", keys.back(), "\n");
  }
  ASSERT_TRUE(ReplaceFile(Kept(), Sha256Hex(lines) + "\n", lines).ok());
  Open();
  ASSERT_TRUE(digests_->Find(keys.front()).has_value());
  ASSERT_TRUE(Digest(Write("weights", "one")).has_value());
  EXPECT_FALSE(digests_->Find(keys.front()).has_value());
  EXPECT_TRUE(digests_->Find(keys[1]).has_value());
}

TEST_F(FileDigestsTest, WhatCannotBeKeptIsToldOnce) {
  fs::create_directory(Kept().string() + ".new");
  EXPECT_EQ(Digest(Write("a", "one")), Sha256Hex("one"));
  EXPECT_EQ(Digest(Write("b", "two")), Sha256Hex("two"));
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("model_digests.new")));
}

// The scheduling policy of each thread of this process.
std::vector<int> Policies() {
  std::vector<int> policies;
  for (const auto& task : fs::directory_iterator("/proc/self/task")) {
    policies.push_back(::sched_getscheduler(std::stoi(task.path().filename().string())));
  }
  return policies;
}

TEST_F(FileDigestsTest, TheThreadTakesOnlyWhatNobodyElseWants) {
  ASSERT_TRUE(Digest(Write("weights", "one")).has_value());  // the thread runs
  EXPECT_THAT(Policies(), testing::Contains(SCHED_IDLE));
}

// Whether the file's first byte is in the page cache; nothing if the system does not tell.
std::optional<bool> IsCached(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char byte = 0;
  const iovec piece{&byte, 1};
  if (::preadv2(file.get(), &piece, 1, 0, RWF_NOWAIT) == 1) return true;
  if (errno == EAGAIN) return false;
  return std::nullopt;
}

TEST_F(FileDigestsTest, LeaveThePageCacheAsItWas) {
  // On a disk, if there is one: a file system in memory is its own cache.
  std::string folder = (fs::temp_directory_path() / "wan_cache_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const absl::Cleanup remove = [&] { fs::remove_all(folder); };
  const auto write = [&](const std::string& name) {
    const std::string path = folder + "/" + name;
    std::ofstream(path, std::ios::binary) << std::string(size_t{3} << 20, name.front());
    return ModelFile{name, path, FileVersion::Of(path).value()};
  };
  const auto forget = [](const ModelFile& written) {
    const Descriptor file(::open(written.path.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::fsync(file.get()), 0);
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  };
  const ModelFile cold = write("cold");
  const ModelFile warm = write("warm");
  forget(cold);
  if (IsCached(cold.path) != false || IsCached(warm.path) != true) {
    GTEST_SKIP() << "this file system does not tell what is in the page cache";
  }
  // A kernel with much else to do may keep pages that it was told to forget.
  bool forgotten = false;
  for (int attempt = 0; attempt < 5 && !forgotten; ++attempt) {
    const ModelFile copy = write("cold" + std::to_string(attempt));
    forget(copy);
    ASSERT_TRUE(Digest(copy).has_value());
    forgotten = IsCached(copy.path) == false;
  }
  EXPECT_TRUE(forgotten);
  ASSERT_TRUE(Digest(warm).has_value());
  EXPECT_EQ(IsCached(warm.path), true);
}

}  // namespace
}  // namespace wan::server
