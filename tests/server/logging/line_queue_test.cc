#include "server/logging/line_queue.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "server/logging/audit_log.h"
#include "server/logging/logger.h"
#include "tests/fakes/fake_clock.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Takes lines, unless it is held.
class Reader {
 public:
  LineQueue::Write Write() {
    return [this](std::string_view line) {
      absl::MutexLock lock(&mutex_);
      begun_ = true;
      mutex_.Await(absl::Condition(&free_));
      lines_.emplace_back(line);
      return 0;
    };
  }
  void Hold(bool held) {
    absl::MutexLock lock(&mutex_);
    free_ = !held;
  }
  // Blocks until a write has begun.
  void AwaitWrite() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&begun_));
  }
  std::vector<std::string> lines() {
    absl::MutexLock lock(&mutex_);
    return lines_;
  }

 private:
  absl::Mutex mutex_;
  bool free_ ABSL_GUARDED_BY(mutex_) = true;
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

class LineQueueTest : public ::testing::Test {
 protected:
  // A queue that has room for so many bytes.
  std::unique_ptr<LineQueue> Queue(size_t most_bytes) {
    LineQueue::Options options;
    options.most_bytes = most_bytes;
    return std::make_unique<LineQueue>(reader_.Write(), clock_, options);
  }
  std::unique_ptr<LineQueue> Started(size_t most_bytes) {
    auto queue = Queue(most_bytes);
    queue->Start([](int64_t dropped) { return absl::StrCat("dropped ", dropped); });
    return queue;
  }

  fakes::FakeClock clock_;
  Reader reader_;
};

TEST_F(LineQueueTest, LinesAreWrittenInTheirOrder) {
  const auto queue = Started(1 << 20);
  for (int i = 0; i < 1000; ++i) queue->Push(absl::StrCat(i));
  ASSERT_TRUE(queue->Flush(absl::Seconds(1)));
  const auto lines = reader_.lines();
  ASSERT_THAT(lines, SizeIs(1000));
  for (size_t i = 0; i < lines.size(); ++i) EXPECT_EQ(lines[i], absl::StrCat(i));
  EXPECT_EQ(queue->waiting_bytes(), 0);
}

TEST_F(LineQueueTest, WhatDoesNotFitIsDroppedAndToldOnceThereIsRoom) {
  const auto queue = Started(8);
  reader_.Hold(true);
  queue->Push("aaaa");
  reader_.AwaitWrite();
  queue->Push("bbbb");
  EXPECT_EQ(queue->waiting_bytes(), 8) << "with the one that is being written";
  queue->Push("c");
  queue->Push("d");
  EXPECT_EQ(queue->dropped(), 2);
  reader_.Hold(false);
  ASSERT_TRUE(queue->Flush(absl::Seconds(1)));
  queue->Push("e");
  ASSERT_TRUE(queue->Flush(absl::Seconds(1)));
  EXPECT_THAT(reader_.lines(), ElementsAre("aaaa", "bbbb", "dropped 2", "e"));
  EXPECT_EQ(queue->dropped(), 2);
}

TEST_F(LineQueueTest, AfterALineThatWasDroppedNoneIsTakenBeforeThatIsTold) {
  const auto queue = Started(8);
  reader_.Hold(true);
  queue->Push("aaaa");
  reader_.AwaitWrite();
  queue->Push("too long");
  queue->Push("b");  // would fit
  reader_.Hold(false);
  ASSERT_TRUE(queue->Flush(absl::Seconds(1)));
  EXPECT_THAT(reader_.lines(), ElementsAre("aaaa", "dropped 2"));
}

TEST_F(LineQueueTest, ALineThatIsLargerThanTheRoomIsDropped) {
  const auto queue = Started(8);
  queue->Push("123456789");
  ASSERT_TRUE(queue->Flush(absl::Seconds(1)));
  EXPECT_THAT(reader_.lines(), ElementsAre("dropped 1"));
}

TEST_F(LineQueueTest, AtItsEndItWaitsForTheReaderForAMoment) {
  auto queue = Started(1 << 20);
  reader_.Hold(true);
  queue->Push("first");
  reader_.AwaitWrite();
  queue->Push("last");
  std::thread ending([&] { queue.reset(); });
  clock_.AwaitWaiters(1);
  reader_.Hold(false);
  ending.join();
  EXPECT_THAT(reader_.lines(), ElementsAre("first", "last"));
}

TEST_F(LineQueueTest, AReaderThatStandsStillHoldsNoEndBack) {
  // Lives on in the thread that nobody can end.
  static auto* const reader = new Reader;
  reader->Hold(true);
  auto queue = std::make_unique<LineQueue>(reader->Write(), clock_);
  queue->Start([](int64_t) { return std::string(); });
  queue->Push("first");
  reader->AwaitWrite();
  std::thread ending([&] { queue.reset(); });
  clock_.AwaitWaiters(1);
  EXPECT_THAT(reader->lines(), IsEmpty());
  clock_.Advance(absl::Seconds(1));
  ending.join();
  reader->Hold(false);
}

TEST_F(LineQueueTest, ErrorsAreTold) {
  absl::Mutex mutex;
  std::vector<int> errors;
  LineQueue::Options options;
  options.failed = [&](int error) {
    absl::MutexLock lock(&mutex);
    errors.push_back(error);
  };
  LineQueue queue([](std::string_view line) { return line == "good" ? 0 : ENOSPC; }, clock_,
                  options);
  queue.Start([](int64_t) { return std::string(); });
  queue.Push("good");
  queue.Push("bad");
  ASSERT_TRUE(queue.Flush(absl::Seconds(1)));
  absl::MutexLock lock(&mutex);
  EXPECT_THAT(errors, ElementsAre(ENOSPC));
}

TEST_F(LineQueueTest, ALoggerSaysHowManyOfItsLinesWereDropped) {
  Logger logger(LogLevel::kInfo, LogFormat::kJson, clock_, Queue(200));
  reader_.Hold(true);
  logger.Log(LogLevel::kInfo, "first");
  reader_.AwaitWrite();
  for (int i = 0; i < 10; ++i) logger.Log(LogLevel::kInfo, "some more lines");
  const int64_t dropped = logger.dropped();
  EXPECT_GT(dropped, 5);
  reader_.Hold(false);
  logger.Flush(absl::Seconds(1));
  logger.Log(LogLevel::kInfo, "later");
  logger.Flush(absl::Seconds(1));
  const auto lines = reader_.lines();
  ASSERT_THAT(lines, SizeIs(10 - static_cast<size_t>(dropped) + 3));
  EXPECT_THAT(lines.front(), HasSubstr("\"first\""));
  EXPECT_THAT(lines[lines.size() - 2],
              HasSubstr(absl::StrCat(
                  R"("level":"warning","message":"log lines were dropped","count":)", dropped)));
  EXPECT_THAT(lines.back(), HasSubstr("\"later\""));
}

// A pipe that nobody reads, with whatever it holds.
class Pipe {
 public:
  Pipe() : folder_(::testing::TempDir() + "/wan_pipe_XXXXXX") {
    EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/pipe";
    EXPECT_EQ(::mkfifo(path_.c_str(), 0600), 0);
    fd_ = ::open(path_.c_str(), O_RDWR | O_NONBLOCK);
  }
  ~Pipe() {
    ::close(fd_);
    std::filesystem::remove_all(folder_);
  }
  const std::string& path() const { return path_; }

  // Reads it until it has had so many lines.
  std::vector<std::string> Read(size_t count) {
    std::string text;
    for (;;) {
      char chunk[4096];
      const ssize_t read = ::read(fd_, chunk, sizeof chunk);
      if (read > 0) text.append(chunk, static_cast<size_t>(read));
      const std::vector<std::string> lines = absl::StrSplit(text, '\n');
      if (lines.size() > count) return lines;
    }
  }

 private:
  std::string folder_;
  std::string path_;
  int fd_ = -1;
};

TEST_F(LineQueueTest, AnAuditLogThatNobodyTakesHoldsNoCallBack) {
  constexpr int kEntries = 40'000;  // more than the pipe and the queue have room for
  Pipe pipe;
  Logger logger(LogLevel::kInfo, LogFormat::kJson, clock_, [](std::string_view) {});
  const auto audit = AuditLog::ToFile(pipe.path(), logger, clock_);
  ASSERT_TRUE(audit.ok()) << audit.status();
  for (int i = 0; i < kEntries; ++i) {
    (*audit)->Write({"p", "user", "/m", "ipv4:192.0.2.7:1", absl::StrCat(i), "OK", ""});
  }
  const int64_t dropped = (*audit)->dropped();
  EXPECT_GT(dropped, 0);
  const size_t taken = kEntries - static_cast<size_t>(dropped);
  const auto lines = pipe.Read(taken + 1);
  for (size_t i = 0; i < taken; ++i) {
    ASSERT_THAT(lines[i], HasSubstr(absl::StrCat("\"resource\":\"", i, "\""))) << i;
  }
  EXPECT_THAT(lines[taken],
              HasSubstr(absl::StrCat("\"log lines were dropped\",\"count\":", dropped)));
}

using LineQueueDeathTest = LineQueueTest;

// Far more lines than a thread writes between the last of them and the end of the process.
void LogAndCrash(int signal) {
  Logger& logger =
      *new Logger(LogLevel::kInfo, LogFormat::kText, SystemClock(), StandardError(SystemClock()));
  WriteLinesAtCrash(logger);
  for (int i = 0; i < 20'000; ++i) logger.Log(LogLevel::kInfo, absl::StrCat("line ", i));
  logger.Log(LogLevel::kError, "assertion failed");
  raise(signal);
}

TEST_F(LineQueueDeathTest, TheLastLinesOfACrashAreWritten) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  for (const int signal : {SIGABRT, SIGSEGV}) {
    EXPECT_EXIT(LogAndCrash(signal), ::testing::KilledBySignal(signal), "assertion failed");
  }
}

}  // namespace
}  // namespace wan::server
