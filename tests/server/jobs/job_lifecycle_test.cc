// What ends a job, or brings it back: cancel, deadline, stop, kill -9.
#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using wan::v1::JOB_STATE_CANCELLED;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_QUEUED;
using wan::v1::JOB_STATE_RUNNING;

constexpr char kRestarted[] = "requeued server restarted while the job was running";
constexpr char kStopped[] = "requeued server stopped while the job was running";

class LifecycleTest : public ServiceTest {
 protected:
  // What a kill -9 now would leave, opened by a new process: a new engine and service.
  void KillAndRestart(bool load = true) {
    ASSERT_TRUE(service_->List({}).ok());  // waits until the log is written
    const fs::path copy = folder_.path() / absl::StrCat("after_kill_", ++kills_);
    CopyFolder(options_.data_dir, copy);
    Close();
    engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
    OpenIn(copy, load);
  }

  // A job that runs and stands in `stage`.
  std::string CreateHeld(const std::string& stage,
                         const wan::v1::GenerationRequest& request = Request()) {
    engine_->Hold(stage);
    std::string name = Create(request);
    engine_->AwaitHeld(stage);
    return name;
  }

  wan::v1::GenerationRequest RequestWithDeadline(absl::Duration from_now) {
    wan::v1::GenerationRequest request = Request();
    *request.mutable_deadline() = ToProto(clock_.Now() + from_now);
    return request;
  }

  int kills_ = 0;
};

void ExpectNoHoles(const std::vector<wan::v1::Event>& events) {
  int64_t sequence = 0;
  for (const wan::v1::Event& event : events) EXPECT_EQ(event.sequence(), ++sequence);
}

TEST_F(LifecycleTest, CancelEndsAQueuedJobAtOnce) {
  Open();
  CreateHeld("T5_Encoding");
  const std::string name = Create();
  const auto answer = service_->Cancel(name, "CancelJob");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->state(), JOB_STATE_CANCELLED);
  EXPECT_EQ(answer->attempt(), 0);
  EXPECT_EQ(answer->error().code(), static_cast<int>(absl::StatusCode::kCancelled));
  EXPECT_TRUE(answer->has_end_time());
  EXPECT_FALSE(answer->has_start_time());
  EXPECT_THAT(Brief(RunToEnd(name)), ElementsAre("queued 0", "cancelled CancelJob"));
  EXPECT_EQ(service_->Stats().queued_total, 0);
}

TEST_F(LifecycleTest, CancelEndsARunningJobWithinOneStep) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  const auto answer = service_->Cancel(name, "CancelJob");
  ASSERT_TRUE(answer.ok()) << answer.status();
  const std::vector<std::string> events = Brief(RunToEnd(name));
  EXPECT_EQ(events.back(), "cancelled CancelJob");
  EXPECT_THAT(events, Not(Contains("start Step_2_Loading")));
  EXPECT_EQ(Get(name).state(), JOB_STATE_CANCELLED);
  engine_->Release("Step_1_Inference");
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

TEST_F(LifecycleTest, AcceptedCancelHoldsEvenIfTheEngineIsDone) {
  Open();
  const std::string name = CreateHeld("Video_Encoding");  // nothing looks at the stop behind it
  ASSERT_TRUE(service_->Cancel(name, "CancelJob").ok());
  EXPECT_EQ(Brief(RunToEnd(name).back()), "cancelled CancelJob");
  EXPECT_EQ(Get(name).artifacts_size(), 0);
  Close();
  EXPECT_TRUE(fs::is_empty(options_.data_dir / "artifacts"));
  EXPECT_TRUE(fs::is_empty(options_.data_dir / "staging"));
}

TEST_F(LifecycleTest, CancelOfAnEndedJobChangesNothing) {
  Open();
  const std::string name = Create();
  RunToEnd(name);
  const wan::v1::Job before = Get(name);
  const auto answer = service_->Cancel(name, "CancelJob");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->SerializeAsString(), before.SerializeAsString());
}

TEST_F(LifecycleTest, TheFirstReasonHolds) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference", RequestWithDeadline(absl::Seconds(10)));
  ASSERT_TRUE(service_->Cancel(name, "first").ok());
  ASSERT_TRUE(service_->Cancel(name, "second").ok());
  EXPECT_EQ(Brief(RunToEnd(name).back()), "cancelled first");
}

TEST_F(LifecycleTest, DeadlineEndsAQueuedJob) {
  Open();
  CreateHeld("T5_Encoding");
  const std::string name = Create(RequestWithDeadline(absl::Seconds(10)));
  clock_.Advance(absl::Seconds(9));
  EXPECT_EQ(Get(name).state(), JOB_STATE_QUEUED);
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(Brief(RunToEnd(name)), ElementsAre("queued 0", "cancelled deadline exceeded"));
  EXPECT_EQ(Get(name).error().code(), static_cast<int>(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(LifecycleTest, DeadlineEndsARunningJobWithinOneStep) {
  Open();
  const std::string name = CreateHeld("Step_0_Inference", RequestWithDeadline(absl::Seconds(10)));
  clock_.Advance(absl::Seconds(10));
  const std::vector<std::string> events = Brief(RunToEnd(name));
  EXPECT_EQ(events.back(), "cancelled deadline exceeded");
  EXPECT_THAT(events, Not(Contains("start Step_1_Loading")));
}

TEST_F(LifecycleTest, DeadlineOfAnEndedJobIsForgotten) {
  Open();
  const std::string name = Create(RequestWithDeadline(absl::Seconds(10)));
  RunToEnd(name);
  clock_.Advance(absl::Seconds(20));
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
  EXPECT_EQ(Get(name).state(), JOB_STATE_COMPLETED);
}

TEST_F(LifecycleTest, ManyWatchersAndOnesThatGoAwayDoNotHarmTheJob) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  std::vector<std::unique_ptr<BlockingReader>> readers;
  for (int i = 0; i < 50; ++i) {
    readers.push_back(std::make_unique<BlockingReader>(*service_, name, i));
  }
  // One that never reads, one that leaves in the middle, one that leaves while it waits.
  BlockingReader idle(*service_, name);
  {
    BlockingReader leaves(*service_, name);
    leaves.Next();
  }
  {
    auto waits = service_->Watch(name, 0, [] {});
    wan::v1::Event event;
    while ((*waits)->TryNext(&event) == EventCursor::Next::kEvent) {
    }
  }
  engine_->Release("Step_1_Inference");
  const std::vector<wan::v1::Event> all = RunToEnd(name);
  EXPECT_EQ(Brief(all.back()), "completed");
  for (size_t i = 0; i < readers.size(); ++i) {
    const std::vector<wan::v1::Event> rest = readers[i]->Rest();
    ASSERT_EQ(rest.size(), i < all.size() ? all.size() - i : 0) << i;
    for (const wan::v1::Event& event : rest) {
      EXPECT_EQ(event.SerializeAsString(), all[event.sequence() - 1].SerializeAsString());
    }
  }
  EXPECT_EQ(Brief(idle.Rest()), Brief(all));
}

TEST_F(LifecycleTest, EndedJobsReplayFromEverySequence) {
  Open();
  const std::string name = Create();
  const std::vector<wan::v1::Event> all = RunToEnd(name);
  KillAndRestart();  // so that the store alone knows them
  for (size_t after = 0; after <= all.size() + 1; ++after) {
    const std::vector<wan::v1::Event> rest =
        BlockingReader(*service_, name, static_cast<int64_t>(after)).Rest();
    ASSERT_EQ(rest.size(), after < all.size() ? all.size() - after : 0);
    if (!rest.empty()) {
      EXPECT_EQ(rest.front().sequence(), static_cast<int64_t>(after) + 1);
    }
  }
}

// --- kill -9 ---

class KillAtStageTest : public LifecycleTest, public testing::WithParamInterface<std::string> {};

TEST_P(KillAtStageTest, RunsAgainFromItsStart) {
  Open();
  RunToEnd(Create());  // takes the engine's first seed
  wan::v1::GenerationRequest request = Request();
  request.set_image("PNG bytes");
  request.set_steps(2);
  const std::string name = CreateHeld(GetParam(), request);
  ASSERT_TRUE(service_->List({}).ok());
  const int64_t seen = Get(name).last_sequence();
  const std::vector<std::string> before = [&] {
    BlockingReader reader(*service_, name);
    std::vector<std::string> texts;
    for (int64_t i = 0; i < seen; ++i) texts.push_back(Brief(*reader.Next()));
    return texts;
  }();
  EXPECT_EQ(before.back(), absl::StrCat("start ", GetParam()));

  KillAndRestart(/*load=*/false);
  EXPECT_EQ(Get(name).state(), JOB_STATE_QUEUED);
  EXPECT_EQ(Get(name).queue_position(), 0);
  std::vector<std::string> after;
  {
    BlockingReader follower(*service_, name, seen);
    LoadModel("m");
    after = Brief(follower.Rest());
  }
  ASSERT_GE(after.size(), 4u);
  EXPECT_EQ(after[0], kRestarted);
  EXPECT_EQ(after[1], "queued 0");
  EXPECT_EQ(after[2], "start Queue_Wait");
  EXPECT_EQ(after.back(), "completed");
  EXPECT_EQ(std::count(after.begin(), after.end(), "start TI2V_Preprocess"), 1);

  const std::vector<wan::v1::Event> all = RunToEnd(name);
  ExpectNoHoles(all);
  EXPECT_EQ(all[static_cast<size_t>(seen)].attempt(), 1);
  EXPECT_EQ(all[static_cast<size_t>(seen) + 1].attempt(), 2);
  EXPECT_EQ(all.back().attempt(), 2);
  const wan::v1::Job job = Get(name);
  EXPECT_EQ(job.state(), JOB_STATE_COMPLETED);
  EXPECT_EQ(job.attempt(), 2);
  EXPECT_EQ(job.artifacts_size(), 1);
  EXPECT_EQ(service_->Report(name)->attempt(), 2);
  const std::vector<GenerationRequest> generated = engine_->Generated();
  ASSERT_THAT(generated, SizeIs(1));
  EXPECT_EQ(*generated[0].image, "PNG bytes");
  EXPECT_EQ(generated[0].seed, 1001);  // drawn by the first process
  Close();
  EXPECT_TRUE(fs::is_empty(options_.data_dir / "staging"));
}

INSTANTIATE_TEST_SUITE_P(EveryStage, KillAtStageTest,
                         testing::Values("TI2V_Preprocess", "T5_Encoding", "VAE_Encoding",
                                         "Step_0_Loading", "Step_0_Inference", "Step_1_Loading",
                                         "Step_1_Inference", "VAE_Decoding", "Video_Encoding"),
                         [](const auto& stage) { return stage.param; });

TEST_F(LifecycleTest, KillLeavesQueuedJobsInTheirOrder) {
  Open();
  CreateHeld("T5_Encoding", Request("running"));
  wan::v1::GenerationRequest urgent = Request("urgent");
  urgent.set_priority(1);
  const std::string first = Create(Request("first"));
  const std::string second = Create(Request("second"));
  const std::string third = Create(urgent);
  KillAndRestart(/*load=*/false);
  EXPECT_EQ(Get(first).state(), JOB_STATE_QUEUED);
  EXPECT_EQ(Get(first).queue_position(), 2);
  LoadModel("m");
  for (const std::string& name : {first, second, third}) {
    const std::vector<wan::v1::Event> events = RunToEnd(name);
    ExpectNoHoles(events);
    EXPECT_EQ(Brief(events.back()), "completed");
    EXPECT_EQ(events.back().attempt(), 1);
  }
  std::vector<std::string> prompts;
  for (const GenerationRequest& request : engine_->Generated()) prompts.push_back(request.prompt);
  EXPECT_THAT(prompts, ElementsAre("urgent", "running", "first", "second"));
}

TEST_F(LifecycleTest, AttemptsCountOverManyKills) {
  options_.max_attempts = 100;
  Open();
  std::string name = CreateHeld("Step_1_Inference");
  for (int attempt = 2; attempt <= 5; ++attempt) {
    KillAndRestart(/*load=*/false);
    engine_->Hold("Step_1_Inference");
    LoadModel("m");
    engine_->AwaitHeld("Step_1_Inference");
    EXPECT_EQ(Get(name).attempt(), attempt);
  }
  engine_->Release("Step_1_Inference");
  ExpectNoHoles(RunToEnd(name));
}

TEST_F(LifecycleTest, AJobThatTakesTheProcessWithItThreeTimesFailsAndTheNextOneRuns) {
  Open();
  const std::string poison = CreateHeld("Step_1_Inference");
  const std::string next = Create(Request("next"));
  std::vector<std::string> times;
  for (int attempt = 1; attempt <= 3; ++attempt) {
    times.push_back(absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", clock_.Now(), absl::UTCTimeZone()));
    EXPECT_EQ(Get(poison).lost_attempts_size(), attempt - 1) << "one that runs is not lost";
    KillAndRestart(/*load=*/false);
    clock_.Advance(absl::Seconds(10));
    if (attempt == 3) break;
    engine_->Hold("Step_1_Inference");
    LoadModel("m");
    engine_->AwaitHeld("Step_1_Inference");
  }
  const wan::v1::Job job = Get(poison);
  EXPECT_EQ(job.state(), wan::v1::JOB_STATE_FAILED);
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(job.error().details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "ATTEMPTS_EXHAUSTED");
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(job.error().message(), testing::HasSubstr(absl::StrCat(
                                           "attempt ", i + 1, " last reported at ",
                                           times[static_cast<size_t>(i)], " in Step_1_Inference")));
  }
  const std::vector<wan::v1::Event> events = RunToEnd(poison);
  ExpectNoHoles(events);
  EXPECT_TRUE(events.back().has_failed());
  LoadModel("m");
  EXPECT_EQ(Brief(RunToEnd(next).back()), "completed");
}

TEST_F(LifecycleTest, AServerThatIsToldToStopCountsAgainstNoJob) {
  options_.max_attempts = 1;
  Open();
  const std::string name = CreateHeld("T5_Encoding");
  for (int attempt = 2; attempt <= 4; ++attempt) {
    service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
    Close();
    Open();
    engine_->AwaitHeld("T5_Encoding");
    EXPECT_EQ(Get(name).attempt(), attempt);
    EXPECT_EQ(Get(name).lost_attempts_size(), 0);
  }
  engine_->Release("T5_Encoding");
  EXPECT_EQ(Brief(RunToEnd(name).back()), "completed");
}

// The supervisor's patience may end before the grace time does.
TEST_F(LifecycleTest, AKillAfterTheStopBeganCountsAgainstNoJob) {
  options_.max_attempts = 1;
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  std::thread stopper([&] { service_->Stop(StopMode::kFinish, absl::Hours(1)); });
  while (ReasonOf(service_->Create(Request(), false).status()) != kReasonServerStopping) {
    std::this_thread::yield();
  }
  ASSERT_TRUE(service_->List({}).ok());  // waits until the log is written
  const fs::path copy = folder_.path() / "killed_in_grace";
  CopyFolder(options_.data_dir, copy);
  engine_->Release("Step_1_Inference");
  stopper.join();
  Close();
  OpenIn(copy);
  EXPECT_EQ(Brief(RunToEnd(name).back()), "completed");
  EXPECT_EQ(Get(name).lost_attempts_size(), 0);
}

TEST_F(LifecycleTest, AnAttemptIsDurableBeforeTheEngineIsCalled) {
  options_.max_attempts = 1;
  Open();
  const std::string name = CreateHeld("TI2V_Preprocess");
  // Nothing is waited for: the row was written before the engine got the job.
  const fs::path copy = folder_.path() / "killed_at_once";
  CopyFolder(options_.data_dir, copy);
  Close();
  engine_->Release("TI2V_Preprocess");
  OpenIn(copy, /*load=*/false);
  EXPECT_EQ(Get(name).state(), wan::v1::JOB_STATE_FAILED);
}

TEST_F(LifecycleTest, KillBetweenRenameAndCompletedLeavesNoStrayFile) {
  Open();
  const std::string name = CreateHeld("Video_Encoding");
  const fs::path folder = options_.data_dir / "artifacts" / std::string(JobIdOf(name));
  fs::create_directory(folder);
  std::ofstream(folder / "video.mkv") << "of attempt 1";
  const fs::path foreign = options_.data_dir / "artifacts" / "other";
  fs::create_directory(foreign);
  KillAndRestart(/*load=*/false);
  EXPECT_FALSE(fs::exists(options_.data_dir / "artifacts" / std::string(JobIdOf(name))));
  EXPECT_TRUE(fs::exists(options_.data_dir / "artifacts" / "other"));  // no job of this database
}

TEST_F(LifecycleTest, KillKeepsCompletedVideosReportsAndRequestIds) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_request_id("once");
  const std::string name = Create(request);
  RunToEnd(name);
  const wan::v1::Job before = Get(name);
  KillAndRestart();
  EXPECT_EQ(Get(name).SerializeAsString(), before.SerializeAsString());
  EXPECT_TRUE(service_->OpenArtifact(name + "/artifacts/video.mp4", 0).ok());
  EXPECT_EQ(service_->Report(name)->stages_size(), 12);
  const auto again = service_->Create(request, false);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->created);
  EXPECT_EQ(again->job.name(), name);
  EXPECT_THAT(engine_->Generated(), IsEmpty());
}

TEST_F(LifecycleTest, KillEndsTheJobsOfCallers) {
  Open();
  engine_->Hold("T5_Encoding");
  const auto running = service_->Create(Request(), true);
  engine_->AwaitHeld("T5_Encoding");
  const auto waiting = service_->Create(Request(), true);
  ASSERT_TRUE(running.ok() && waiting.ok());
  KillAndRestart();
  for (const auto* created : {&running, &waiting}) {
    EXPECT_EQ(Brief(RunToEnd((*created)->job.name()).back()),
              "cancelled caller went away (server restarted)");
    EXPECT_EQ(Get((*created)->job.name()).state(), JOB_STATE_CANCELLED);
  }
  EXPECT_THAT(engine_->Generated(), IsEmpty());
}

TEST_F(LifecycleTest, DeadlineHoldsOverAKill) {
  Open();
  CreateHeld("T5_Encoding");
  const std::string past = Create(RequestWithDeadline(absl::Seconds(10)));
  const std::string future = Create(RequestWithDeadline(absl::Hours(1)));
  ASSERT_TRUE(service_->List({}).ok());
  const fs::path copy = folder_.path() / "copy";
  CopyFolder(options_.data_dir, copy);
  Close();
  clock_.Advance(absl::Seconds(20));  // while nothing runs
  OpenIn(copy, /*load=*/false);
  EXPECT_EQ(Brief(RunToEnd(past).back()), "cancelled deadline exceeded");
  clock_.Advance(absl::Hours(1));
  EXPECT_EQ(Brief(RunToEnd(future).back()), "cancelled deadline exceeded");
}

TEST_F(LifecycleTest, JobsOfModelsThatAreNotLoadedWait) {
  Open();
  LoadModel("n");
  CreateHeld("T5_Encoding");
  wan::v1::GenerationRequest request = Request("for n");
  request.set_model("n");
  const std::string waiting = Create(request);
  const std::string other = Create(Request("for m"));
  KillAndRestart();
  EXPECT_EQ(Brief(RunToEnd(other).back()), "completed");  // overtakes the one that cannot run
  EXPECT_EQ(Get(waiting).state(), JOB_STATE_QUEUED);
  LoadModel("n");
  EXPECT_EQ(Brief(RunToEnd(waiting).back()), "completed");
}

class ProblemListener final : public StateListener {
 public:
  void OnProblem(const absl::Status& problem) override {
    absl::MutexLock lock(&mutex_);
    problems_.emplace_back(problem.message());
  }
  std::vector<std::string> problems() {
    absl::MutexLock lock(&mutex_);
    return problems_;
  }

 private:
  absl::Mutex mutex_;
  std::vector<std::string> problems_;
};

TEST_F(LifecycleTest, ADamagedRowIsNamedAndAllElseWorks) {
  ProblemListener listener;
  options_.listeners = {&listener};
  Open();
  const std::string done = Create();
  RunToEnd(done);
  CreateHeld("T5_Encoding");
  const std::string damaged = Create();
  const std::string waiting = Create();
  ASSERT_TRUE(service_->List({}).ok());
  const fs::path copy = folder_.path() / "damaged";
  CopyFolder(options_.data_dir, copy);
  Close();
  engine_->Release("T5_Encoding");
  SQLite::Database((copy / "jobs.db").string(), SQLite::OPEN_READWRITE)
      .exec(absl::StrCat("UPDATE jobs SET job = x'ff' WHERE name = '", damaged, "'"));
  OpenIn(copy);
  EXPECT_THAT(listener.problems(), ElementsAre(testing::HasSubstr(damaged + " is damaged")));
  EXPECT_EQ(Brief(RunToEnd(waiting).back()), "completed");
  EXPECT_EQ(Get(done).state(), JOB_STATE_COMPLETED);
  EXPECT_THAT(service_->List({})->jobs(), SizeIs(3));
  const absl::Status status = service_->Get(damaged).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(damaged));
  Close();
}

// --- stop ---

TEST_F(LifecycleTest, StopRequeuesAndTheNextProcessRunsAgain) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  const std::string waiting = Create();
  {
    BlockingReader watcher(*service_, name);
    service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
    const std::vector<std::string> events = Brief(watcher.Rest());
    EXPECT_THAT(events, Contains(kStopped));
    EXPECT_THAT(events, Not(Contains("start Step_2_Loading")));
    EXPECT_EQ(watcher.cursor().status().code(), absl::StatusCode::kUnavailable);
  }
  EXPECT_EQ(Get(name).state(), JOB_STATE_QUEUED);
  EXPECT_EQ(ReasonOf(service_->Create(Request(), false).status()), kReasonServerStopping);
  EXPECT_EQ(service_->Report(name)->attempt(), 1);
  Close();
  engine_->Release("Step_1_Inference");
  Open();
  EXPECT_EQ(RunToEnd(name).back().attempt(), 2);
  EXPECT_EQ(RunToEnd(waiting).back().attempt(), 1);
  ExpectNoHoles(RunToEnd(name));
}

TEST_F(LifecycleTest, StopLetsTheRunningJobFinish) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  const std::string waiting = Create();
  std::thread stopper([&] { service_->Stop(StopMode::kFinish, absl::Hours(1)); });
  // Until the stop has begun, which a full queue is not.
  while (ReasonOf(service_->Create(Request(), false).status()) != kReasonServerStopping) {
    std::this_thread::yield();
  }
  engine_->Release("Step_1_Inference");
  stopper.join();
  EXPECT_EQ(Get(name).state(), JOB_STATE_COMPLETED);
  EXPECT_EQ(Get(waiting).state(), JOB_STATE_QUEUED);
  EXPECT_THAT(engine_->Generated(), SizeIs(1));
}

TEST_F(LifecycleTest, StopRequeuesWhatDoesNotFinishInTime) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  std::atomic<bool> stopped = false;
  std::thread stopper([&] {
    service_->Stop(StopMode::kFinish, absl::Seconds(30));
    stopped = true;
  });
  while (!stopped) clock_.Advance(absl::Seconds(1));
  stopper.join();
  EXPECT_EQ(Get(name).state(), JOB_STATE_QUEUED);
}

TEST_F(LifecycleTest, StopKeepsWorkThatIsDone) {
  Open();
  const std::string name = CreateHeld("Video_Encoding");  // nothing looks at the stop behind it
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  EXPECT_EQ(Get(name).state(), JOB_STATE_COMPLETED);
}

TEST_F(LifecycleTest, StopEndsTheRunningJobOfACaller) {
  Open();
  engine_->Hold("Step_1_Inference");
  const auto created = service_->Create(Request(), true);
  ASSERT_TRUE(created.ok());
  engine_->AwaitHeld("Step_1_Inference");
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  EXPECT_EQ(Brief(RunToEnd(created->job.name()).back()),
            "cancelled caller went away (server stopped)");
}

TEST_F(LifecycleTest, StopEndsCursorsThatWait) {
  Open();
  CreateHeld("T5_Encoding");
  const std::string waiting = Create();
  BlockingReader watcher(*service_, waiting);
  EXPECT_EQ(Brief(*watcher.Next()), "queued 0");
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  watcher.Rest();
  EXPECT_EQ(ReasonOf(watcher.cursor().status()), kReasonServerStopping);
  // One that comes later reads what there is, and ends the same way.
  BlockingReader late(*service_, waiting);
  EXPECT_EQ(Brief(*late.Next()), "queued 0");
  late.Rest();
  EXPECT_EQ(late.cursor().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(LifecycleTest, ASecondServerOnTheFolderIsRefused) {
  Open();
  const auto second = JobService::Open(options_, *engine_, clock_);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable) << second.status();
}

}  // namespace
}  // namespace wan::server
