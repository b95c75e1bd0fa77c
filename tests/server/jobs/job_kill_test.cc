// What a kill -9 leaves, and what the next process makes of it.
#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "server/conversion/names.h"
#include "server/watch/listener.h"
#include "tests/server/jobs/lifecycle_fixture.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using wan::v1::JOB_STATE_CANCELLED;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_QUEUED;

constexpr char kRestarted[] = "requeued server restarted while the job was running";

class KillAtStageTest : public LifecycleTest, public testing::WithParamInterface<std::string> {};

TEST_P(KillAtStageTest, RunsAgainFromItsStart) {
  Open();
  RunToEnd(Create());  // takes the engine's first seed
  wan::v1::GenerationRequest request = Request();
  request.set_image("PNG bytes");
  request.set_steps(2);
  const std::string name = CreateHeld(GetParam(), request);
  service_->AwaitWrites();
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
  const auto again = calls().Create(request, false);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->created);
  EXPECT_EQ(again->job.name(), name);
  EXPECT_THAT(engine_->Generated(), IsEmpty());
}

TEST_F(LifecycleTest, KillEndsTheJobsOfCallers) {
  Open();
  engine_->Hold("T5_Encoding");
  const auto running = calls().Create(Request(), true);
  engine_->AwaitHeld("T5_Encoding");
  const auto waiting = calls().Create(Request(), true);
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
  const fs::path copy = CopyOfData("copy");
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
  const fs::path copy = CopyOfData("damaged");
  Close();
  engine_->Release("T5_Encoding");
  SQLite::Database((copy / "jobs.db").string(), SQLite::OPEN_READWRITE)
      .exec(absl::StrCat("UPDATE jobs SET job = x'ff' WHERE name = '", damaged, "'"));
  OpenIn(copy);
  EXPECT_THAT(listener.problems(), ElementsAre(testing::HasSubstr(damaged + " is damaged")));
  EXPECT_EQ(Brief(RunToEnd(waiting).back()), "completed");
  EXPECT_EQ(Get(done).state(), JOB_STATE_COMPLETED);
  EXPECT_THAT(calls().List({})->jobs(), SizeIs(3));
  const absl::Status status = service_->Get(damaged).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(damaged));
  Close();
}

}  // namespace
}  // namespace wan::server
