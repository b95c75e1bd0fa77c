// The way of one job through the service: created, run, watched, reported, fetched.
#include "server/jobs/job_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/store/digest.h"
#include "tests/server/jobs/test_support.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using wan::v1::JOB_STATE_CANCELLED;
using wan::v1::JOB_STATE_COMPLETED;
using wan::v1::JOB_STATE_FAILED;
using wan::v1::JOB_STATE_QUEUED;
using wan::v1::JOB_STATE_RUNNING;

class JobServiceTest : public ServiceTest {};

TEST_F(JobServiceTest, EveryStageOfAJobIsAnEvent) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_steps(2);
  const std::string job = Create(request);
  const std::vector<wan::v1::Event> events = RunToEnd(job);
  EXPECT_THAT(Brief(events),
              ElementsAre("queued 0", "start Queue_Wait", "end Queue_Wait", "start Total_Execution",
                          "start TI2V_Preprocess", "end TI2V_Preprocess", "start T5_Encoding",
                          "end T5_Encoding", "start Step_0_Loading", "end Step_0_Loading",
                          "start Step_0_Inference", "end Step_0_Inference", "step 1/2",
                          "start Step_1_Loading", "end Step_1_Loading", "start Step_1_Inference",
                          "end Step_1_Inference", "step 2/2", "start VAE_Decoding",
                          "end VAE_Decoding", "start Video_Encoding", "end Video_Encoding",
                          "end Total_Execution", "completed"));
  int64_t sequence = 0;
  for (const wan::v1::Event& event : events) {
    EXPECT_EQ(event.sequence(), ++sequence);
    EXPECT_EQ(event.job(), job);
    EXPECT_EQ(event.attempt(), 1);
    EXPECT_TRUE(event.has_time());
  }
}

TEST_F(JobServiceTest, JobKeepsTheResolvedRequest) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_image("PNG bytes");
  request.set_priority(7);
  request.set_request_id("once");
  (*request.mutable_labels())["team"] = "film";
  const wan::v1::Job job = Get(Create(request));
  EXPECT_EQ(job.request().width(), 64);
  EXPECT_EQ(job.request().num_frames(), 5);
  EXPECT_EQ(job.request().solver(), wan::v1::SOLVER_UNIPC);
  EXPECT_EQ(job.request().seed(), 1000);
  EXPECT_EQ(job.request().negative_prompt(), "bad quality");
  EXPECT_THAT(job.request().outputs(), ElementsAre(wan::v1::OUTPUT_KIND_MP4));
  EXPECT_EQ(job.request().priority(), 7);
  EXPECT_EQ(job.request().request_id(), "once");
  EXPECT_EQ(job.request().labels().at("team"), "film");
  EXPECT_TRUE(job.request().image().empty());
  EXPECT_EQ(job.image_sha256(), Sha256Hex("PNG bytes"));
}

TEST_F(JobServiceTest, JobSaysWhatWasDoneWithItsImage) {
  Open();
  EXPECT_FALSE(Get(Create()).has_input_image());
  wan::v1::GenerationRequest request = Request();
  request.set_image("PNG bytes");
  const std::string over_white = Create(request);
  request.set_background("#0A80ff");
  const std::string over_blue = Create(request);
  RunToEnd(over_white);
  RunToEnd(over_blue);
  EXPECT_EQ(engine_->Generated().back().background, (Color{0x0a, 0x80, 0xff}));
  Close();
  Open(/*load=*/false);
  EXPECT_EQ(Get(over_white).request().background(), "#ffffff");
  EXPECT_EQ(Get(over_white).input_image().blended_over(), "#ffffff");
  const wan::v1::Job job = Get(over_blue);
  EXPECT_EQ(job.request().background(), "#0a80ff");
  EXPECT_EQ(job.input_image().ShortDebugString(),
            R"(format: "PNG" width: 64 height: 32 exif_orientation: 6 blended_over: "#0a80ff" )"
            "bits_per_sample: 16");
  EXPECT_EQ(service_->Receipt(over_blue)->request().background(), "#0a80ff");
}

// Today's clients send nothing for no image; one that sends an empty file has made a mistake.
TEST_F(JobServiceTest, AnEmptyImageIsNoTextToVideo) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_image("");
  EXPECT_THAT(FieldViolationsOf(calls().Create(request, false).status()),
              ElementsAre(FieldViolation{
                  "image", "is empty; must be a PNG, JPEG or WebP file, or be left out"}));
  wan::v1::QuoteRequest quote;
  *quote.mutable_request() = request;
  EXPECT_EQ(service_->Quote(quote).status().code(), absl::StatusCode::kInvalidArgument);
  wan::v1::SubmitBatchRequest batch;
  *batch.add_requests() = request;
  EXPECT_EQ(FieldViolationsOf(calls().SubmitBatch(batch, "").status()).at(0).field,
            "requests[0].image");
  EXPECT_THAT(engine_->Generated(), IsEmpty());
}

TEST_F(JobServiceTest, EngineGetsTheResolvedRequestAndTheImage) {
  Open();
  wan::v1::GenerationRequest request = Request();
  request.set_image("PNG bytes");
  RunToEnd(Create(request));
  const std::vector<GenerationRequest> generated = engine_->Generated();
  ASSERT_THAT(generated, SizeIs(1));
  EXPECT_EQ(generated[0].seed, 1000);
  EXPECT_EQ(*generated[0].image, "PNG bytes");
  // The stored size is a plan's; the image's rule is not applied to it again.
  EXPECT_TRUE(generated[0].size_is_exact);
}

TEST_F(JobServiceTest, CompletedJobHasItsArtifacts) {
  Open();
  engine_->TakeTime("Step_Inference", absl::Seconds(2));
  wan::v1::GenerationRequest request = Request();
  request.set_seed(5);
  request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
  request.add_outputs(wan::v1::OUTPUT_KIND_MP4);
  const std::string name = Create(request);
  const wan::v1::Event last = RunToEnd(name).back();
  const wan::v1::Job job = Get(name);
  EXPECT_EQ(job.state(), JOB_STATE_COMPLETED);
  EXPECT_EQ(job.attempt(), 1);
  EXPECT_EQ(job.last_sequence(), last.sequence());
  EXPECT_FALSE(job.has_progress());
  EXPECT_FALSE(job.has_queue_position());
  EXPECT_EQ(ToTime(job.end_time()) - ToTime(job.start_time()), absl::Seconds(6));
  EXPECT_EQ(last.completed().seconds(), 6);
  ASSERT_EQ(job.artifacts_size(), 2);
  EXPECT_EQ(last.completed().artifacts(1).SerializeAsString(),
            job.artifacts(1).SerializeAsString());
  const wan::v1::Artifact& latents = job.artifacts(0);
  EXPECT_EQ(latents.name(), name + "/artifacts/latents.safetensors");
  EXPECT_EQ(latents.kind(), wan::v1::OUTPUT_KIND_LATENTS);
  EXPECT_EQ(latents.size_bytes(), 14);
  EXPECT_EQ(latents.sha256(), Sha256Hex("latents seed 5"));
  EXPECT_EQ(job.artifacts(1).content_type(), "video/mp4");

  auto opened = service_->OpenArtifact(latents.name(), 8);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(opened->artifact.sha256(), latents.sha256());
  EXPECT_EQ(*opened->reader.Read(4), "seed");
  EXPECT_EQ(opened->reader.offset(), 12);
  EXPECT_EQ(*opened->reader.Read(100), " 5");
  EXPECT_EQ(*opened->reader.Read(100), "");
}

TEST_F(JobServiceTest, ArtifactErrorsTellWhy) {
  Open();
  const std::string name = Create();
  RunToEnd(name);
  const uint64_t size = Get(name).artifacts(0).size_bytes();
  auto at_end = service_->OpenArtifact(name + "/artifacts/video.mp4", size);
  ASSERT_TRUE(at_end.ok()) << at_end.status();
  EXPECT_EQ(*at_end->reader.Read(1), "");
  EXPECT_EQ(service_->OpenArtifact(name + "/artifacts/video.mp4", size + 1).status().code(),
            absl::StatusCode::kOutOfRange);
  EXPECT_EQ(ReasonOf(service_->OpenArtifact(name + "/artifacts/video.mkv", 0).status()),
            kReasonArtifactNotFound);
  EXPECT_THAT(FieldsOf(service_->OpenArtifact(name + "/artifacts/../x", 0).status()),
              ElementsAre("name"));
  EXPECT_EQ(ReasonOf(service_->OpenArtifact("jobs/abc/artifacts/video.mp4", 0).status()),
            kReasonJobNotFound);
}

TEST_F(JobServiceTest, ReportHasTheStagesInOrderAlsoWhileRunning) {
  Open();
  engine_->Hold("VAE_Decoding");
  engine_->TakeTime("T5_Encoding", absl::Milliseconds(1500));
  wan::v1::GenerationRequest request = Request();
  request.set_steps(1);
  const std::string name = Create(request);
  engine_->AwaitHeld("VAE_Decoding");

  auto report = service_->Report(name);
  ASSERT_TRUE(report.ok()) << report.status();
  std::vector<std::string> stages;
  for (const auto& stage : report->stages()) stages.push_back(stage.stage());
  EXPECT_THAT(stages, ElementsAre("Queue_Wait", "TI2V_Preprocess", "T5_Encoding", "Step_0_Loading",
                                  "Step_0_Inference"));
  EXPECT_EQ(report->stages(2).seconds(), 1.5);
  EXPECT_EQ(report->stages(2).cpu_percent(), 25);
  EXPECT_FALSE(report->stages(2).has_sm_activity_percent());
  EXPECT_EQ(report->stages(4).expert(), "only");
  EXPECT_EQ(report->model(), "m");
  EXPECT_EQ(report->device(), "cpu");
  EXPECT_EQ(report->dtype(), "fp32");

  engine_->Release("VAE_Decoding");
  RunToEnd(name);
  report = service_->Report(name);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->stages_size(), 8);
  EXPECT_EQ(report->stages(1).stage(), "Total_Execution");
  EXPECT_EQ(report->attempt(), 1);
}

TEST_F(JobServiceTest, ReportOfAJobThatNeverRan) {
  Open();
  engine_->Hold("T5_Encoding");
  Create();
  engine_->AwaitHeld("T5_Encoding");
  EXPECT_EQ(ReasonOf(service_->Report(Create()).status()), kReasonReportNotFound);
  EXPECT_EQ(ReasonOf(service_->Report("jobs/none").status()), kReasonJobNotFound);
  EXPECT_THAT(FieldsOf(service_->Report("none").status()), ElementsAre("job"));
}

TEST_F(JobServiceTest, ProgressTellsTheTimeLeft) {
  Open();
  engine_->TakeTime("Step_Inference", absl::Seconds(4));
  engine_->TakeTime("VAE_Decoding", absl::Seconds(1));
  RunToEnd(Create());  // teaches what decoding takes

  engine_->Hold("Step_1_Inference");
  const std::string name = Create();
  engine_->AwaitHeld("Step_1_Inference");
  BlockingReader(*service_, name).Until([](const auto& event) {
    return event.has_step_progress();
  });
  const wan::v1::Job job = Get(name);
  EXPECT_EQ(job.state(), JOB_STATE_RUNNING);
  EXPECT_EQ(job.progress().step(), 1);
  EXPECT_EQ(job.progress().total(), 3);
  EXPECT_EQ(job.progress().seconds(), 4);
  EXPECT_EQ(job.progress().eta_seconds(), 2 * 4 + 1);
  EXPECT_EQ(job.progress().timestep(), 1000);

  // A job behind it waits for what is left of 3 * 4 + 1 seconds, of which 4 are over.
  const std::string next = Create();
  EXPECT_EQ(BlockingReader(*service_, next).Next()->queued().eta_seconds(), 9);
  EXPECT_EQ(service_->Stats().queued_seconds.at("m"), 13);
  engine_->Release("Step_1_Inference");
}

TEST_F(JobServiceTest, EngineFailureEndsTheJobAndNotTheNext) {
  Open();
  engine_->FailAt("Step_1_Inference", absl::ResourceExhaustedError("CUDA out of memory"));
  const std::string failing = Create();
  EXPECT_EQ(Brief(RunToEnd(failing).back()), "failed CUDA out of memory");
  const wan::v1::Job job = Get(failing);
  EXPECT_EQ(job.state(), JOB_STATE_FAILED);
  EXPECT_EQ(job.error().code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(job.artifacts_size(), 0);
  const auto report = service_->Report(failing);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->stages(report->stages_size() - 1).error(), "CUDA out of memory");
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

TEST_F(JobServiceTest, EngineExceptionEndsTheJobAndNotTheNext) {
  Open();
  engine_->ThrowAt("VAE_Decoding", "c10::Error: shapes");
  const std::string failing = Create();
  EXPECT_EQ(Brief(RunToEnd(failing).back()), "failed the engine threw: c10::Error: shapes");
  EXPECT_EQ(Get(failing).error().code(), static_cast<int>(absl::StatusCode::kInternal));
  EXPECT_EQ(Brief(RunToEnd(Create()).back()), "completed");
}

TEST_F(JobServiceTest, MissingOutputIsAFailureAndLeavesNoFile) {
  Open();
  engine_->SkipOutput(OutputKind::kMp4);
  const std::string name = Create();
  EXPECT_THAT(Brief(RunToEnd(name).back()), HasSubstr("did not write"));
  Close();  // after the executor has tidied up
  EXPECT_TRUE(std::filesystem::is_empty(options_.data_dir / "staging"));
  EXPECT_TRUE(std::filesystem::is_empty(options_.data_dir / "artifacts"));
}

TEST_F(JobServiceTest, AJobCompletesWithoutWhatIsOptional) {
  Open();
  engine_->LoseOutput(OutputKind::kLatents, absl::ResourceExhaustedError("the disk is full"));
  engine_->LoseOutput(std::nullopt, absl::InternalError("no picture"));
  wan::v1::GenerationRequest request = Request();
  request.add_outputs(wan::v1::OUTPUT_KIND_MP4);
  request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
  const std::string name = Create(request);
  RunToEnd(name);
  Close();
  Open();  // what is stored counts
  const wan::v1::Job job = *service_->Get(name);
  EXPECT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED);
  ASSERT_EQ(job.artifacts_size(), 1);
  EXPECT_EQ(job.artifacts(0).kind(), wan::v1::OUTPUT_KIND_MP4);
  ASSERT_EQ(job.omissions_size(), 2);
  EXPECT_EQ(job.omissions(0).output(), wan::v1::OUTPUT_KIND_LATENTS);
  EXPECT_EQ(job.omissions(0).error().message(), "the disk is full");
  EXPECT_EQ(job.omissions(1).output(), wan::v1::OUTPUT_KIND_UNSPECIFIED);
  // Half a file must not lie beside the whole ones.
  size_t files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(options_.data_dir / "artifacts")) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(JobServiceTest, AJobRecordsOnWhatItsVideoDepends) {
  options_.server_version = "1.2.3";
  Open();
  const std::string name = Create();
  RunToEnd(name);
  Close();
  Open();
  const wan::v1::Provenance provenance = service_->Get(name)->provenance();
  EXPECT_EQ(provenance.server_version(), "1.2.3");
  EXPECT_EQ(provenance.noise_device(), "cpu");
  EXPECT_EQ(provenance.device_name(), "Fake CPU");
  EXPECT_EQ(provenance.dtype(), "fp32");
  EXPECT_EQ(provenance.decode_tile_rows(), 1);
}

TEST_F(JobServiceTest, PreviewsGoToWhoWatchesAndAreNotKept) {
  Open();
  engine_->Hold("T5_Encoding");
  engine_->Hold("VAE_Decoding");
  wan::v1::GenerationRequest request = Request();
  request.set_preview_interval(2);
  request.set_steps(2);
  const std::string name = Create(request);
  engine_->AwaitHeld("T5_Encoding");
  BlockingReader live(*service_, name);
  engine_->Release("T5_Encoding");
  engine_->AwaitHeld("VAE_Decoding");
  const wan::v1::Event preview =
      live.Until([](const wan::v1::Event& event) { return event.has_preview(); });
  EXPECT_EQ(preview.sequence(), 0);
  EXPECT_EQ(preview.attempt(), 1);
  EXPECT_EQ(preview.job(), name);
  EXPECT_EQ(preview.preview().step(), 2);
  EXPECT_EQ(preview.preview().jpeg(), "JPEG of step 2");
  EXPECT_THAT(preview.preview().later_jpegs(),
              ElementsAre("JPEG of step 2, middle", "JPEG of step 2, last"));
  engine_->Release("VAE_Decoding");
  for (const std::string& text : Brief(RunToEnd(name))) EXPECT_THAT(text, Not(HasSubstr("prev")));
}

TEST_F(JobServiceTest, ListenersHearEveryChangeInOrder) {
  class Listener final : public StateListener {
   public:
    void OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) override {
      absl::MutexLock lock(&mutex);
      changes.emplace_back(previous, job.state());
    }
    absl::Mutex mutex;
    std::vector<std::pair<int, int>> changes;
  } listener;
  options_.listeners = {&listener};
  Open();
  RunToEnd(Create());
  Close();
  EXPECT_THAT(listener.changes, ElementsAre(std::pair(0, 1), std::pair(1, 2), std::pair(2, 3)));
}

TEST_F(JobServiceTest, SinksOfTheCallerSeeEverySpanWithItsContext) {
  struct Seen {
    absl::Mutex mutex;
    std::vector<std::string> lines;
  } seen;
  class Sink final : public TelemetrySink {
   public:
    Sink(Seen& seen, SinkContext context) : seen_(seen), context_(std::move(context)) {}
    void OnSpanEnd(const SpanRecord& record) override {
      absl::MutexLock lock(&seen_.mutex);
      seen_.lines.push_back(absl::StrCat(context_.model, " ", context_.job.empty() ? "-" : "job",
                                         " ", context_.attempt, " ", NameOf(record.stage)));
    }

   private:
    Seen& seen_;
    const SinkContext context_;
  };
  options_.sinks = {
      [&](const SinkContext& context) { return std::make_unique<Sink>(seen, context); }};
  Open();
  RunToEnd(Create());
  Close();
  absl::MutexLock lock(&seen.mutex);
  EXPECT_EQ(seen.lines.front(), "m - 0 Model_Initialization");
  EXPECT_EQ(seen.lines.back(), "m job 1 Total_Execution");
}

TEST_F(JobServiceTest, StatsCount) {
  Open();
  RunToEnd(Create());
  engine_->FailAt("T5_Encoding", absl::InternalError("x"));
  RunToEnd(Create());
  engine_->Hold("T5_Encoding");
  Create();
  engine_->AwaitHeld("T5_Encoding");
  Create();
  const JobStats stats = service_->Stats();
  EXPECT_EQ(stats.jobs_by_state.at(JOB_STATE_COMPLETED), 1);
  EXPECT_EQ(stats.jobs_by_state.at(JOB_STATE_FAILED), 1);
  EXPECT_EQ(stats.jobs_by_state.at(JOB_STATE_RUNNING), 1);
  EXPECT_EQ(stats.jobs_by_state.at(JOB_STATE_QUEUED), 1);
  EXPECT_FALSE(stats.jobs_by_state.contains(JOB_STATE_CANCELLED));
  EXPECT_EQ(stats.queued.at("m"), 1);
  EXPECT_EQ(stats.running_total, 1);
  EXPECT_EQ(stats.queue_capacity, 100);
}

}  // namespace
}  // namespace wan::server
