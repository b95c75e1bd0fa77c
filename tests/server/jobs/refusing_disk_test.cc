// What callers are told while the disk takes no writes, or does not answer: nothing that a kill
// could take back, and at once what needs no disk.
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/errors.h"
#include "server/watch/listener.h"
#include "tests/fakes/fake_sync.h"
#include "tests/server/jobs/full_disk.h"
#include "tests/server/jobs/lifecycle_fixture.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::Not;
using testing::SizeIs;
using wan::v1::JOB_STATE_CANCELLED;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_QUEUED;
using wan::v1::JOB_STATE_RUNNING;

// Fills the disk when a job gets to a state, before anything of that is written.
class DiskFiller final : public StateListener {
 public:
  explicit DiskFiller(wan::v1::JobState state) : state_(state) {}
  void OnJobState(const wan::v1::Job& job, wan::v1::JobState /*previous*/) override {
    if (job.state() != state_) return;
    absl::MutexLock lock(&mutex_);
    if (!filled_) disk_.emplace();
    filled_ = true;
  }
  // Waits until it is full.
  void AwaitFull() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&filled_));
  }
  void Free() {
    absl::MutexLock lock(&mutex_);
    disk_.reset();
  }

 private:
  const wan::v1::JobState state_;
  absl::Mutex mutex_;
  bool filled_ = false;
  std::optional<FullDisk> disk_;
};

class RefusingDiskTest : public LifecycleTest {
 protected:
  // Lets the seconds pass that the log and the watch wait before they try again, until `done`.
  void AdvanceUntil(const std::function<bool()>& done) {
    while (!done()) {
      clock_.Advance(absl::Seconds(1));
      std::this_thread::yield();
    }
  }

  void ExpectRefused(const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
    EXPECT_EQ(ReasonOf(status), kReasonStorageUnavailable);
  }

  // What a watcher sees now.
  std::vector<std::string> Seen(const std::string& job) {
    const auto cursor = service_->Watch(job, 0, [] {});
    std::vector<std::string> texts;
    wan::v1::Event event;
    while ((*cursor)->TryNext(&event) == EventCursor::Next::kEvent) texts.push_back(Brief(event));
    return texts;
  }
};

TEST_F(RefusingDiskTest, ACancelThatIsNotStoredIsNotTold) {
  Open();
  CreateHeld("Step_1_Inference");
  const std::string waiting = Create();
  {
    const FullDisk full;
    ExpectRefused(calls().Cancel(waiting, "CancelJob").status());
    ExpectRefused(calls().Cancel(waiting, "CancelJob").status());
    EXPECT_EQ(Get(waiting).state(), JOB_STATE_QUEUED);
    EXPECT_FALSE(Get(waiting).has_end_time());
    EXPECT_FALSE(Get(waiting).has_error());
    EXPECT_EQ(calls().Delete(waiting).code(), absl::StatusCode::kFailedPrecondition);
    wan::v1::ListJobsRequest cancelled;
    cancelled.add_states(JOB_STATE_CANCELLED);
    EXPECT_THAT(calls().List(cancelled)->jobs(), SizeIs(0));
    EXPECT_THAT(Seen(waiting), Not(Contains("cancelled CancelJob")));
  }
  // After a kill it waits as if nothing had been asked.
  const fs::path killed = folder_.path() / "killed";
  CopyFolder(options_.data_dir, killed);
  // It ends by itself once the disk takes writes.
  AdvanceUntil([&] { return Seen(waiting).back() == "cancelled CancelJob"; });
  EXPECT_EQ(Get(waiting).state(), JOB_STATE_CANCELLED);
  EXPECT_TRUE(calls().Cancel(waiting, "again").ok());
  Close();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  OpenIn(killed, /*load=*/false);
  EXPECT_EQ(Get(waiting).state(), JOB_STATE_QUEUED);
}

TEST_F(RefusingDiskTest, ACancelOfARunningJobThatIsNotStoredIsNotTold) {
  Open();
  const std::string running = CreateHeld("Step_1_Inference");
  service_->AwaitWrites();
  {
    const FullDisk full;
    ExpectRefused(calls().Cancel(running, "CancelJob").status());
    while (service_->Stats().running_total > 0) std::this_thread::yield();
    EXPECT_EQ(Get(running).state(), JOB_STATE_RUNNING);
    EXPECT_THAT(Seen(running), Not(Contains("cancelled CancelJob")));
  }
  AdvanceUntil([&] { return Seen(running).back() == "cancelled CancelJob"; });
  EXPECT_EQ(Get(running).state(), JOB_STATE_CANCELLED);
}

// The job has not stopped when the process dies, but its caller was told that it is cancelled.
TEST_F(RefusingDiskTest, ACancelThatWasToldHoldsAfterAKill) {
  Open();
  engine_->HearNoStop();
  const std::string running = CreateHeld("Step_1_Inference");
  const auto cancelled = calls().Cancel(running, "no longer wanted");
  ASSERT_TRUE(cancelled.ok()) << cancelled.status();
  EXPECT_EQ(cancelled->state(), JOB_STATE_RUNNING);
  EXPECT_FALSE(cancelled->has_error()) << "only jobs that have ended have one";
  const fs::path killed = folder_.path() / "killed";
  CopyFolder(options_.data_dir, killed);
  engine_->Release("Step_1_Inference");
  Close();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  OpenIn(killed);
  EXPECT_EQ(Brief(RunToEnd(running).back()), "cancelled no longer wanted");
  EXPECT_EQ(Get(running).state(), JOB_STATE_CANCELLED);
  EXPECT_EQ(Get(running).error().message(), "no longer wanted");
  EXPECT_THAT(engine_->Generated(), SizeIs(0));
}

TEST_F(RefusingDiskTest, AJobIsCompletedOnceThatIsStored) {
  DiskFiller filler(JOB_STATE_COMPLETED);
  options_.listeners = {&filler};
  Open();
  const std::string job = Create();
  filler.AwaitFull();
  service_->AwaitWrites();
  EXPECT_TRUE(fs::exists(options_.data_dir / "artifacts"));
  const wan::v1::Job shown = Get(job);
  EXPECT_EQ(shown.state(), JOB_STATE_RUNNING);
  EXPECT_THAT(shown.artifacts(), SizeIs(0));
  EXPECT_FALSE(shown.has_end_time());
  EXPECT_EQ(shown.progress().step(), 3) << "it is told how far the job was";
  EXPECT_EQ(calls().List({})->jobs(0).state(), JOB_STATE_RUNNING);
  EXPECT_EQ(service_->Report(job)->state(), JOB_STATE_RUNNING);
  EXPECT_THAT(Seen(job), Not(Contains("completed")));
  ExpectRefused(calls().Cancel(job, "CancelJob").status());
  filler.Free();
  const fs::path killed = folder_.path() / "killed";
  CopyFolder(options_.data_dir, killed);
  AdvanceUntil([&] { return Seen(job).back() == "completed"; });
  EXPECT_EQ(Get(job).state(), JOB_STATE_COMPLETED);
  EXPECT_TRUE(service_->OpenArtifact(job + "/artifacts/video.mp4", 0).ok());
  EXPECT_THAT(engine_->Generated(), SizeIs(1));
  Close();
  // After a kill in between the job runs again.
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  OpenIn(killed);
  EXPECT_EQ(Brief(RunToEnd(job).back()), "completed");
  EXPECT_THAT(engine_->Generated(), SizeIs(1));
  Close();  // tells `filler` until then
}

// A disk that hangs in a sync.
class HangingDiskTest : public RefusingDiskTest {
 protected:
  HangingDiskTest() { options_.sync_database = sync_.function(); }
  void TearDown() override {
    sync_.Hold(false);
    RefusingDiskTest::TearDown();
  }

  // Has a job created by a caller who does not wait.
  std::shared_ptr<absl::Notification> BeginCreate(const wan::v1::GenerationRequest& request,
                                                  std::string* name = nullptr) {
    auto done = std::make_shared<absl::Notification>();
    service_->Create(
        std::make_shared<const wan::v1::GenerationRequest>(request), {},
        [](const std::function<void()>& task) { task(); },
        [done, name](const absl::StatusOr<JobService::Created>& created) {
          EXPECT_TRUE(created.ok()) << created.status();
          if (name != nullptr && created.ok()) *name = created->job.name();
          done->Notify();
        });
    return done;
  }

  fakes::FakeSync sync_;
};

TEST_F(HangingDiskTest, WhoReadsOrAsksWaitsForNoSync) {
  Open();
  const std::string done = Create();
  RunToEnd(done);
  const std::string running = CreateHeld("Step_1_Inference");
  service_->AwaitWrites();
  sync_.Hold(true);
  const int begun = sync_.begun();
  wan::v1::GenerationRequest with_id = Request();
  with_id.set_request_id("id");
  std::string first;
  std::string second;
  std::vector<std::shared_ptr<absl::Notification>> waiting;
  // On one thread: each returns at once.
  for (int i = 0; i < 8; ++i) waiting.push_back(BeginCreate(Request()));
  waiting.push_back(BeginCreate(with_id, &first));
  waiting.push_back(BeginCreate(with_id, &second));
  waiting.push_back(std::make_shared<absl::Notification>());
  service_->Cancel(running, "CancelJob", [last = waiting.back()](const auto& cancelled) {
    EXPECT_TRUE(cancelled.ok()) << cancelled.status();
    last->Notify();
  });
  waiting.push_back(std::make_shared<absl::Notification>());
  service_->Delete(
      done + "x", [](const std::function<void()>& task) { task(); },
      [last = waiting.back()](const absl::Status&) { last->Notify(); });
  waiting.back()->WaitForNotification();  // unknown: no change
  waiting.pop_back();
  sync_.AwaitBegun(begun + 1);

  EXPECT_EQ(Get(running).state(), JOB_STATE_RUNNING);
  EXPECT_EQ(Get(done).state(), JOB_STATE_COMPLETED);
  EXPECT_THAT(calls().List({})->jobs(), SizeIs(2)) << "what is not on disk is not told";
  wan::v1::QuoteRequest quote;
  *quote.mutable_request() = Request();
  EXPECT_TRUE(service_->Quote(quote).ok());
  EXPECT_TRUE(service_->Report(running).ok());
  EXPECT_TRUE(service_->Receipt(done).ok());
  EXPECT_TRUE(service_->OpenArtifact(done + "/artifacts/video.mp4", 0).ok());
  EXPECT_EQ(Seen(done).back(), "completed");
  EXPECT_TRUE(service_->UsageOf("").ok());
  for (const auto& each : waiting) EXPECT_FALSE(each->HasBeenNotified());

  sync_.Hold(false);
  for (const auto& each : waiting) each->WaitForNotification();
  EXPECT_EQ(first, second) << "the second call with a request_id found the job of the first";
  EXPECT_THAT(calls().List({})->jobs(), SizeIs(11));
}

TEST_F(HangingDiskTest, ABatchWaitsForItsIdsWithoutAThread) {
  Open();
  engine_->Hold("T5_Encoding");
  sync_.Hold(true);
  auto batch = std::make_shared<wan::v1::SubmitBatchRequest>();
  for (const char* id : {"b", "a", "c"}) {
    *batch->add_requests() = Request();
    batch->mutable_requests(batch->requests_size() - 1)->set_request_id(id);
  }
  wan::v1::GenerationRequest one = Request();
  one.set_request_id("b");
  std::string name;
  const auto created = BeginCreate(one, &name);
  absl::Notification submitted;
  wan::v1::SubmitBatchResponse response;
  service_->SubmitBatch(
      batch, {}, [](const std::function<void()>& task) { task(); },
      [&](const absl::StatusOr<wan::v1::SubmitBatchResponse>& accepted) {
        ASSERT_TRUE(accepted.ok()) << accepted.status();
        response = *accepted;
        submitted.Notify();
      });
  EXPECT_FALSE(submitted.HasBeenNotified());
  sync_.Hold(false);
  created->WaitForNotification();
  submitted.WaitForNotification();
  ASSERT_THAT(response.jobs(), SizeIs(3));
  EXPECT_EQ(response.jobs(0).name(), name);
  EXPECT_THAT(calls().List({})->jobs(), SizeIs(3));
}

}  // namespace
}  // namespace wan::server
