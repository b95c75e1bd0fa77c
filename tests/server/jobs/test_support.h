// What the tests of server/jobs share: a folder, a service on fakes, and a reader that waits.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "server/jobs/job_service.h"
#include "server/watch/event_log.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_engine.h"
#include "tests/server/jobs/blocking_calls.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// A folder of its own, removed with everything in it.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Reads a job's log as a client does that waits for each event.
class BlockingReader {
 public:
  BlockingReader(JobService& service, const std::string& job, int64_t after_sequence = 0);
  BlockingReader(EventLog& log, const std::string& job, int64_t after_sequence = 0);
  ~BlockingReader();

  // Waits for the next event; nothing at the end.
  std::optional<wan::v1::Event> Next();
  // All up to the end.
  std::vector<wan::v1::Event> Rest();
  // The first that `wanted` accepts; fails the test if the log ends before.
  wan::v1::Event Until(const std::function<bool(const wan::v1::Event&)>& wanted);
  EventCursor& cursor() { return *cursor_; }

 private:
  std::function<void()> Notify();

  absl::Mutex mutex_;
  bool notified_ = false;
  std::unique_ptr<EventCursor> cursor_;
};

// Short texts of events, for example "queued 0", "start T5_Encoding", "end T5_Encoding", "step
// 1/3", "completed", "cancelled CancelJob".
std::string Brief(const wan::v1::Event& event);
std::vector<std::string> Brief(const std::vector<wan::v1::Event>& events);

// The fields that a status names as wrong.
std::vector<std::string> FieldsOf(const absl::Status& status);

// A copy of the folder as it is on the disk now: what a kill -9 at this moment leaves.
void CopyFolder(const std::filesystem::path& from, const std::filesystem::path& to);

// A service with the model "m", on a fake engine and clock, in a folder that can be opened again.
class ServiceTest : public testing::Test {
 protected:
  ServiceTest();
  ~ServiceTest() override;
  // Closes the service before anything of a derived test ends, listeners among it, which it tells
  // until then.
  void TearDown() override { Close(); }

  // Opens the service, on `folder` or on the test's own, with `options_`; loads "m" unless told.
  void Open(bool load = true);
  void OpenIn(const std::filesystem::path& folder, bool load = true);
  void Close();
  void LoadModel(const std::string& name, const std::string& path = "synthetic:ti2v-5b");

  // A valid request for "m".
  static wan::v1::GenerationRequest Request(const std::string& prompt = "a cat");
  BlockingCalls calls() { return BlockingCalls(*service_); }
  // Creates a job that is not tied to its caller; its name.
  std::string Create(const wan::v1::GenerationRequest& request = Request());
  wan::v1::Job Get(const std::string& job);
  // Waits for the job's end; all its events.
  std::vector<wan::v1::Event> RunToEnd(const std::string& job);

  TempFolder folder_;
  fakes::FakeClock clock_;
  std::unique_ptr<fakes::FakeEngine> engine_;
  JobServiceOptions options_;
  std::unique_ptr<JobService> service_;
};

}  // namespace wan::server
