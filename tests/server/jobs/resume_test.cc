// A job goes on from its latest savepoint: after a kill -9, a stop and a lost device.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"
#include "server/jobs/job_savepoints.h"
#include "server/jobs/savepoint_origin.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_QUEUED;

// Hears of savepoints and problems.
class Listener final : public StateListener {
 public:
  void OnSavepoint(const wan::v1::Job& /*job*/, int steps_done, double /*seconds*/) override {
    absl::MutexLock lock(&mutex_);
    steps_.push_back(steps_done);
  }
  void OnProblem(const absl::Status& problem) override {
    absl::MutexLock lock(&mutex_);
    problems_.emplace_back(problem.message());
  }

  // Waits until a savepoint behind so many steps is on the disk.
  void AwaitSavepoint(int steps_done) {
    absl::MutexLock lock(&mutex_);
    const auto written = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return !steps_.empty() && steps_.back() == steps_done;
    };
    mutex_.Await(absl::Condition(&written));
  }
  void Forget() {
    absl::MutexLock lock(&mutex_);
    steps_.clear();
  }
  std::vector<int> steps() const {
    absl::MutexLock lock(&mutex_);
    return steps_;
  }
  std::vector<std::string> problems() const {
    absl::MutexLock lock(&mutex_);
    return problems_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<int> steps_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> problems_ ABSL_GUARDED_BY(mutex_);
};

class ResumeTest : public ServiceTest {
 protected:
  ResumeTest() {
    options_.listeners = {&listener_};
    options_.savepoint_interval = absl::ZeroDuration();
  }
  ~ResumeTest() override { Close(); }  // the listener is told things until then

  // A job that runs and stands in `stage`.
  std::string CreateHeld(const std::string& stage) {
    engine_->Hold(stage);
    std::string name = Create();
    engine_->AwaitHeld(stage);
    return name;
  }

  fs::path SavepointOf(const std::string& job) const {
    return options_.data_dir / "savepoints" / job.substr(job.find('/') + 1);
  }

  // The folder as a kill -9 leaves it now.
  fs::path Kill() {
    service_->AwaitWrites();  // waits until the log is written
    const fs::path copy = folder_.path() / absl::StrCat("after_kill_", ++kills_);
    CopyFolder(options_.data_dir, copy);
    Close();
    return copy;
  }
  void Restart(const fs::path& folder) {
    engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
    OpenIn(folder);
  }

  // Waits until the digests of the model's files are on the disk.
  void AwaitDigests() {
    const std::string name = Create();
    RunToEnd(name);
    for (;;) {
      const auto receipt = service_->Receipt(name);
      ASSERT_TRUE(receipt.ok()) << receipt.status();
      if (receipt->files_size() > 0 && !receipt->files(0).sha256().empty()) break;
      std::this_thread::yield();
    }
    listener_.Forget();
  }

  // What the latest attempt says.
  static std::vector<std::string> LastAttempt(const std::vector<wan::v1::Event>& events) {
    std::vector<wan::v1::Event> last;
    for (const wan::v1::Event& event : events) {
      if (event.attempt() == events.back().attempt()) last.push_back(event);
    }
    return Brief(last);
  }

  Listener listener_;
  int kills_ = 0;
};

TEST_F(ResumeTest, AKilledJobGoesOnBehindItsLastStep) {
  Open();
  const std::string name = CreateHeld("Step_2_Inference");
  listener_.AwaitSavepoint(2);
  Restart(Kill());
  const std::vector<wan::v1::Event> events = RunToEnd(name);
  EXPECT_THAT(LastAttempt(events),
              AllOf(Contains("resumed 2"), Contains("start T5_Encoding"),
                    Not(Contains("start Step_1_Inference")), Contains("start Step_2_Inference")));
  EXPECT_EQ(Get(name).state(), JOB_STATE_COMPLETED);
  service_->Stop(StopMode::kFinish, absl::InfiniteDuration());  // waits for what follows the end
  EXPECT_FALSE(fs::exists(SavepointOf(name))) << "nobody needs it any more";
}

TEST_F(ResumeTest, AJobThatWasKilledWhileDecodingIsOnlyDecodedAgain) {
  Open();
  const std::string name = CreateHeld("VAE_Decoding");
  listener_.AwaitSavepoint(3);
  Restart(Kill());
  EXPECT_THAT(
      LastAttempt(RunToEnd(name)),
      ElementsAre("queued 0", "start Queue_Wait", "end Queue_Wait", "start Total_Execution",
                  "resumed 3", "start VAE_Decoding", "end VAE_Decoding", "start Video_Encoding",
                  "end Video_Encoding", "end Total_Execution", "completed"));
}

TEST_F(ResumeTest, AStoppedServerKeepsTheStepsThatAreDone) {
  options_.savepoint_interval = absl::Hours(1);
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  EXPECT_EQ(Get(name).state(), JOB_STATE_QUEUED);
  // The fake ends the step that it is stopped in.
  EXPECT_THAT(listener_.steps(), ElementsAre(2));
  Close();
  Restart(options_.data_dir);
  EXPECT_THAT(Brief(RunToEnd(name)), Contains("resumed 2"));
}

TEST_F(ResumeTest, ALostDeviceLosesNoSavepoint) {
  Open();
  engine_->LoseDeviceAt("Step_2_Inference");
  const std::string name = Create();
  listener_.AwaitSavepoint(2);
  BlockingReader(*service_, name).Until([](const wan::v1::Event& event) {
    return event.has_requeued();
  });
  Restart(Kill());
  EXPECT_THAT(Brief(RunToEnd(name)), Contains("resumed 2"));
}

TEST_F(ResumeTest, TheProgressStandsWhereTheJobGoesOn) {
  Open();
  const std::string name = CreateHeld("Step_2_Inference");
  listener_.AwaitSavepoint(2);
  const fs::path folder = Kill();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  engine_->Hold("T5_Encoding");
  OpenIn(folder);
  engine_->AwaitHeld("T5_Encoding");
  EXPECT_EQ(Get(name).progress().step(), 2);
  EXPECT_EQ(Get(name).progress().total(), 3);
}

TEST_F(ResumeTest, ACancelledJobLeavesNoSavepoint) {
  Open();
  const std::string name = CreateHeld("Step_2_Inference");
  listener_.AwaitSavepoint(2);
  EXPECT_TRUE(fs::exists(SavepointOf(name)));
  ASSERT_TRUE(calls().Cancel(name, "CancelJob").ok());
  RunToEnd(name);
  service_->Stop(StopMode::kFinish, absl::InfiniteDuration());
  EXPECT_FALSE(fs::exists(SavepointOf(name)));
}

TEST_F(ResumeTest, AJobThatIsCancelledBeforeItGoesOnLeavesNoSavepoint) {
  Open();
  const std::string name = CreateHeld("Step_1_Inference");
  service_->Stop(StopMode::kRequeue, absl::ZeroDuration());
  Close();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  OpenIn(options_.data_dir, false);  // without its model the job waits
  EXPECT_TRUE(fs::exists(SavepointOf(name)));
  ASSERT_TRUE(calls().Cancel(name, "CancelJob").ok());
  EXPECT_FALSE(fs::exists(SavepointOf(name)));
}

TEST_F(ResumeTest, AJobThatIsKilledTooOftenLeavesNoSavepoint) {
  options_.max_attempts = 1;
  Open();
  const std::string name = CreateHeld("Step_2_Inference");
  listener_.AwaitSavepoint(2);
  Restart(Kill());
  EXPECT_EQ(Get(name).state(), wan::v1::JOB_STATE_FAILED);
  EXPECT_FALSE(fs::exists(SavepointOf(name)));
}

TEST_F(ResumeTest, ADamagedSavepointIsToldAndTheJobBeginsAtItsStart) {
  Open();
  const std::string name = CreateHeld("Step_2_Inference");
  listener_.AwaitSavepoint(2);
  const fs::path folder = Kill();
  options_.data_dir = folder;
  fs::resize_file(SavepointOf(name), fs::file_size(SavepointOf(name)) - 1);
  Restart(folder);
  EXPECT_THAT(Brief(RunToEnd(name)),
              AllOf(Not(Contains(HasSubstr("resumed"))), Contains("completed")));
  EXPECT_THAT(listener_.problems(),
              ElementsAre(AllOf(HasSubstr(name), HasSubstr("does not hold what was written"))));
}

TEST_F(ResumeTest, AnotherVersionGoesOnWithTheSavepoint) {
  options_.server_version = "1";
  Open();
  const std::string name = CreateHeld("Step_2_Inference");
  listener_.AwaitSavepoint(2);
  const fs::path folder = Kill();
  options_.server_version = "2";
  Restart(folder);
  EXPECT_THAT(Brief(RunToEnd(name)), AllOf(Contains("resumed 2"), Contains("completed")));
  EXPECT_EQ(Get(name).provenance().server_version(), "2");
  EXPECT_THAT(listener_.problems(), IsEmpty());
}

TEST_F(ResumeTest, AnotherDeviceDoesNotGoOnWithTheSavepoint) {
  Open();
  const std::string name = CreateHeld("Step_2_Inference");
  listener_.AwaitSavepoint(2);
  const fs::path folder = Kill();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  engine_->NameDevice("Other CPU");
  OpenIn(folder);
  EXPECT_THAT(Brief(RunToEnd(name)),
              AllOf(Not(Contains(HasSubstr("resumed"))), Contains("completed")));
  EXPECT_THAT(listener_.problems(),
              ElementsAre(AllOf(HasSubstr("another device, library or compute revision"),
                                HasSubstr("\"Fake CPU\" -> \"Other CPU\""))));
}

TEST_F(ResumeTest, FilesOfTheModelThatHaveChangedMakeTheJobBeginAtItsStart) {
  const fs::path model = folder_.path() / "model";
  fs::create_directories(model);
  std::ofstream(model / "weights") << "one";
  const auto load = [&] { LoadModel("m", model.string()); };
  Open(/*load=*/false);
  load();
  const std::string name = CreateHeld("Step_2_Inference");
  listener_.AwaitSavepoint(2);
  const fs::path folder = Kill();
  // In its place, and as long as before.
  const auto before = fs::last_write_time(model / "weights");
  std::ofstream(model / "weights") << "two";
  fs::last_write_time(model / "weights", before + std::chrono::seconds(1));
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  OpenIn(folder, /*load=*/false);
  load();
  EXPECT_THAT(Brief(RunToEnd(name)),
              AllOf(Not(Contains(HasSubstr("resumed"))), Contains("completed")));
  EXPECT_THAT(listener_.problems(),
              Contains(AllOf(HasSubstr(name), HasSubstr("begins at its start"),
                             HasSubstr("the model's files, or those of its LoRAs, were others"))));
}

TEST_F(ResumeTest, FilesThatAreAsTheyWereMakeNoDifference) {
  const fs::path model = folder_.path() / "model";
  fs::create_directories(model);
  std::ofstream(model / "weights") << "one";
  Open(/*load=*/false);
  LoadModel("m", model.string());
  const std::string name = CreateHeld("Step_2_Inference");
  listener_.AwaitSavepoint(2);
  const fs::path folder = Kill();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  OpenIn(folder, /*load=*/false);
  LoadModel("m", model.string());
  EXPECT_THAT(Brief(RunToEnd(name)), Contains("resumed 2"));
}

// The same bytes in other files: the paths, inodes and times differ.
TEST_F(ResumeTest, ACopiedModelGoesOnWithTheSavepoint) {
  const fs::path model = folder_.path() / "model";
  fs::create_directories(model);
  std::ofstream(model / "weights") << "one";
  Open(/*load=*/false);
  LoadModel("m", model.string());
  AwaitDigests();
  const std::string name = CreateHeld("Step_2_Inference");
  listener_.AwaitSavepoint(2);
  const fs::path folder = Kill();
  CopyFolder(model, folder_.path() / "copy");
  fs::last_write_time(folder_.path() / "copy" / "weights",
                      fs::last_write_time(model / "weights") + std::chrono::seconds(1));
  fs::remove_all(model);
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  fs::remove(folder / "model_digests");  // as on a machine that has only the savepoint
  OpenIn(folder, /*load=*/false);
  LoadModel("m", (folder_.path() / "copy").string());
  EXPECT_THAT(Brief(RunToEnd(name)), Contains("resumed 2"));
  EXPECT_THAT(listener_.problems(), IsEmpty());
}

TEST_F(ResumeTest, TheChoiceOfGuidanceIsThatOfTheSavepoint) {
  for (const bool batches : {true, false}) {
    SCOPED_TRACE(batches);
    engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
    engine_->PlanGuidance(batches);
    listener_.Forget();
    OpenIn(folder_.path() / absl::StrCat("guidance_", batches));
    const std::string name = CreateHeld("Step_2_Inference");
    listener_.AwaitSavepoint(2);
    const fs::path folder = Kill();
    engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
    engine_->PlanGuidance(!batches);  // because of another amount of free memory
    OpenIn(folder);
    EXPECT_THAT(Brief(RunToEnd(name)), Contains("resumed 2"));
    EXPECT_EQ(Get(name).provenance().batched_guidance(), batches);
    Close();
  }
  EXPECT_THAT(listener_.problems(), IsEmpty());
}

TEST_F(ResumeTest, ABatchThatNoLongerFitsMakesTheJobBeginAtItsStart) {
  engine_->PlanGuidance(true);
  Open();
  const std::string name = CreateHeld("Step_2_Inference");
  listener_.AwaitSavepoint(2);
  const fs::path folder = Kill();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  engine_->PlanGuidance(true, /*fits=*/false);
  OpenIn(folder);
  EXPECT_THAT(Brief(RunToEnd(name)), Not(Contains(HasSubstr("resumed"))));
  EXPECT_FALSE(Get(name).provenance().batched_guidance());
  EXPECT_THAT(listener_.problems(), ElementsAre(HasSubstr("batched_guidance")));
}

TEST_F(ResumeTest, AJobThatRequiresItsSavepointFailsRatherThanBeginAgain) {
  wan::v1::GenerationRequest request = Request();
  request.set_resume(wan::v1::RESUME_REQUIRE);
  for (const bool damaged : {true, false}) {
    SCOPED_TRACE(damaged);
    engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
    listener_.Forget();
    OpenIn(folder_.path() / absl::StrCat("require_", damaged));
    engine_->Hold("Step_2_Inference");
    const std::string name = Create(request);
    listener_.AwaitSavepoint(2);
    options_.data_dir = Kill();
    if (damaged) {
      fs::resize_file(SavepointOf(name), fs::file_size(SavepointOf(name)) - 1);
      Restart(options_.data_dir);
      RunToEnd(name);
      EXPECT_EQ(Get(name).state(), wan::v1::JOB_STATE_FAILED);
      EXPECT_EQ(ErrorReasonOf(Get(name).error()), "SAVEPOINT_UNUSABLE");
      EXPECT_THAT(Get(name).error().message(), AllOf(HasSubstr("resume: is REQUIRE"),
                                                     HasSubstr("does not hold what was written"),
                                                     Not(HasSubstr(options_.data_dir.string()))));
    } else {
      Restart(options_.data_dir);
      EXPECT_THAT(Brief(RunToEnd(name)), AllOf(Contains("resumed 2"), Contains("completed")));
    }
    Close();
  }
}

TEST_F(ResumeTest, AJobThatRequiresASavepointAndHadNoneBegins) {
  options_.savepoint_interval = absl::Hours(1);
  wan::v1::GenerationRequest request = Request();
  request.set_resume(wan::v1::RESUME_REQUIRE);
  Open();
  engine_->Hold("Step_1_Inference");
  const std::string name = Create(request);
  engine_->AwaitHeld("Step_1_Inference");
  Restart(Kill());
  EXPECT_THAT(Brief(RunToEnd(name)), Contains("completed"));
}

// Its savepoint is gone, but the job knows that it has lost steps.
TEST_F(ResumeTest, AJobThatRequiresItsSavepointMissesIt) {
  wan::v1::GenerationRequest request = Request();
  request.set_resume(wan::v1::RESUME_REQUIRE);
  Open();
  engine_->Hold("Step_2_Inference");
  const std::string name = Create(request);
  listener_.AwaitSavepoint(2);
  const fs::path folder = Kill();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  OpenIn(folder, /*load=*/false);
  fs::remove(SavepointOf(name));
  LoadModel("m");
  RunToEnd(name);
  EXPECT_EQ(ErrorReasonOf(Get(name).error()), "SAVEPOINT_UNUSABLE");
  EXPECT_THAT(Get(name).error().message(), HasSubstr("it is missing"));
}

TEST_F(ResumeTest, AttemptsThatEachGetFurtherAreNotExhausted) {
  options_.max_attempts = 2;
  auto request = Request();
  request.set_steps(6);
  Open();
  engine_->Hold("Step_1_Inference");
  const std::string name = Create(request);
  listener_.AwaitSavepoint(1);
  for (int step = 2; step <= 4; ++step) {
    const fs::path folder = Kill();
    listener_.Forget();  // the one of the process that went on after it was copied
    engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
    engine_->Hold(absl::StrCat("Step_", step, "_Inference"));
    OpenIn(folder);
    listener_.AwaitSavepoint(step);
  }
  Restart(Kill());
  EXPECT_THAT(Brief(RunToEnd(name)), AllOf(Contains("resumed 4"), Contains("completed")));
  const wan::v1::Job job = Get(name);
  ASSERT_EQ(job.lost_attempts_size(), 4);
  EXPECT_EQ(job.lost_attempts(0).steps_kept(), 1);
  EXPECT_EQ(job.lost_attempts(3).steps_kept(), 4);
}

TEST_F(ResumeTest, AStepThatKillsTheServerEachTimeEndsTheJob) {
  options_.max_attempts = 2;
  Open();
  const std::string name = CreateHeld("Step_2_Inference");
  listener_.AwaitSavepoint(2);
  const fs::path folder = Kill();
  engine_ = std::make_unique<fakes::FakeEngine>(&clock_);
  engine_->Hold("Step_2_Inference");
  OpenIn(folder);
  engine_->AwaitHeld("Step_2_Inference");
  OpenIn(Kill(), /*load=*/false);
  EXPECT_EQ(Get(name).state(), wan::v1::JOB_STATE_FAILED);
  EXPECT_THAT(Get(name).error().message(), HasSubstr("without keeping a further step"));
}

TEST_F(ResumeTest, SavepointsAreAsFarApartAsTheIntervalSays) {
  const SavepointStore store(folder_.path());
  FileDigests digests(folder_.path() / "digests", [](const absl::Status&) {});
  JobSavepoints savepoints({.store = store,
                            .clock = clock_,
                            .digests = digests,
                            .job = "jobs/a1",
                            .origin = {},
                            .files = {},
                            .stop = {},
                            .interval = absl::Seconds(30),
                            .will_run_again = [] { return false; },
                            .on_written = [](int, double) {},
                            .on_problem = [](const absl::Status&) {}});
  EXPECT_FALSE(savepoints.IsDue(false));
  clock_.Advance(absl::Seconds(29));
  EXPECT_FALSE(savepoints.IsDue(false));
  EXPECT_TRUE(savepoints.IsDue(true)) << "29 s of work would be lost with the decoding";
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(savepoints.IsDue(false));
  savepoints.Keep({1, "one"});
  EXPECT_FALSE(savepoints.IsDue(false));
  clock_.Advance(absl::Seconds(4));
  EXPECT_FALSE(savepoints.IsDue(true)) << "that is done again as soon as it is read";
}

// Others may be added while the job waits.
TEST_F(ResumeTest, OnlyTheLorasOfTheJobCount) {
  FileDigests digests(folder_.path() / "digests", [](const absl::Status&) {});
  wan::v1::Job job;
  job.mutable_request()->add_loras()->set_name("style");
  ModelDescription model;
  model.loras = {{.name = "style", .parts = {{.path = "/s"}}}};
  model.files = {{"loras/style/s.safetensors", "/s", {}}, {"config.json", "/c", {}}};
  const SavepointOrigin before = OriginOf(job, {}, model, digests);
  EXPECT_THAT(before.files, SizeIs(2));
  model.loras.push_back({.name = "other", .parts = {{.path = "/o"}}});
  model.files.push_back({"loras/other/o.safetensors", "/o", {}});
  EXPECT_EQ(OriginOf(job, {}, model, digests).request, before.request);
  EXPECT_EQ(OriginOf(job, {}, model, digests).files, before.files);
  model.loras[0].parts[0].max_factor = 2;
  EXPECT_NE(OriginOf(job, {}, model, digests).request, before.request);
}

TEST_F(ResumeTest, OnlyTheFilesThatTheJobUsesCount) {
  ModelDescription model;
  model.files = {{"config.json", "", {}},
                 {"ratios", "", {}, FileUse::kStepRatios},
                 {"tiny", "", {}, FileUse::kTinyDecoder},
                 {"vae", "", {}, FileUse::kVae}};
  const auto used = [&](const wan::v1::Job& job) {
    std::vector<std::string> names;
    for (const ModelFile& file : FilesUsedBy(job, model)) names.push_back(file.name);
    return names;
  };
  wan::v1::Job job;
  job.mutable_request()->add_outputs(wan::v1::OUTPUT_KIND_MP4);
  EXPECT_THAT(used(job), ElementsAre("config.json", "vae"));
  job.mutable_request()->set_decoder(wan::v1::DECODER_TINY);
  job.mutable_request()->set_quality(wan::v1::QUALITY_FAST);
  EXPECT_THAT(used(job), ElementsAre("config.json", "ratios", "tiny"));
  job.mutable_request()->set_quality(wan::v1::QUALITY_EXACT);
  job.set_image_sha256("an image");
  EXPECT_THAT(used(job), ElementsAre("config.json", "tiny", "vae"));
  job.clear_image_sha256();
  job.mutable_request()->clear_outputs();
  job.mutable_request()->add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
  EXPECT_THAT(used(job), ElementsAre("config.json"));
}

TEST_F(ResumeTest, AShortJobLeavesNone) {
  options_.savepoint_interval = absl::Seconds(30);
  engine_->TakeTime("Step_Inference", absl::Seconds(1));
  Open();
  RunToEnd(Create());
  service_->Stop(StopMode::kFinish, absl::InfiniteDuration());
  EXPECT_THAT(listener_.steps(), IsEmpty());
}

TEST_F(ResumeTest, AJobGoesOnWithoutSavepointsThatCannotBeWritten) {
  Open();
  std::ofstream(options_.data_dir / "savepoints") << "a file in the way";
  const std::string name = Create();
  EXPECT_THAT(Brief(RunToEnd(name)), Contains("completed"));
  service_->Stop(StopMode::kFinish, absl::InfiniteDuration());
  EXPECT_THAT(listener_.problems(), Contains(HasSubstr("no savepoint of " + name)));
}

}  // namespace
}  // namespace wan::server
