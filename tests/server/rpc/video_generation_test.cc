// CreateJob, GetJob, ListJobs, CancelJob, GetReport and DownloadArtifact.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/store/digest.h"
#include "tests/server/rpc/server_fixture.h"
#include "tests/support/rpc_errors.h"

namespace wan::server {
namespace {

using support::DetailOf;
using support::ReasonOf;
using support::ViolatedFields;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class VideoGenerationTest : public ServerTest {
 protected:
  grpc::Status CancelJob(const std::string& name, wan::v1::Job* job) {
    grpc::ClientContext context;
    wan::v1::CancelJobRequest request;
    request.set_name(name);
    return video_->CancelJob(&context, request, job);
  }

  grpc::Status GetReport(const std::string& name, wan::v1::JobReport* report) {
    grpc::ClientContext context;
    wan::v1::GetReportRequest request;
    request.set_job(name);
    return video_->GetReport(&context, request, report);
  }

  grpc::Status ListJobs(const wan::v1::ListJobsRequest& request,
                        wan::v1::ListJobsResponse* response) {
    grpc::ClientContext context;
    return video_->ListJobs(&context, request, response);
  }

  grpc::Status Download(const std::string& name, uint64_t offset,
                        std::vector<wan::v1::DownloadArtifactResponse>* chunks) {
    grpc::ClientContext context;
    wan::v1::DownloadArtifactRequest request;
    request.set_name(name);
    request.set_offset(offset);
    const auto stream = video_->DownloadArtifact(&context, request);
    wan::v1::DownloadArtifactResponse chunk;
    while (stream->Read(&chunk)) chunks->push_back(chunk);
    return stream->Finish();
  }

  // The error of each method that takes a job's name.
  std::vector<grpc::Status> ErrorsFor(const std::string& name) {
    wan::v1::Job job;
    wan::v1::JobReport report;
    std::vector<wan::v1::Event> events;
    std::vector<wan::v1::DownloadArtifactResponse> chunks;
    grpc::ClientContext context;
    wan::v1::GetJobRequest get;
    get.set_name(name);
    return {video_->GetJob(&context, get, &job), CancelJob(name, &job), Watch(name, 0, &events),
            Download(name + "/artifacts/video.mp4", 0, &chunks), GetReport(name, &report)};
  }
};

TEST_F(VideoGenerationTest, AJobIsAcceptedRunsAndLeavesItsReport) {
  StartServing();
  const wan::v1::Job created = MustCreate();
  EXPECT_EQ(created.name().substr(0, 5), "jobs/");
  EXPECT_EQ(created.request().width(), 64);
  EXPECT_TRUE(created.request().has_seed());
  const wan::v1::Job ended = AwaitEnd(created.name());
  EXPECT_EQ(ended.state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(ended.attempt(), 1);
  ASSERT_THAT(ended.artifacts(), SizeIs(1));
  EXPECT_EQ(ended.artifacts(0).name(), created.name() + "/artifacts/video.mp4");
  wan::v1::JobReport report;
  ASSERT_TRUE(GetReport(created.name(), &report).ok());
  EXPECT_EQ(report.job(), created.name());
  std::set<std::string> stages;
  for (const auto& stage : report.stages()) stages.insert(stage.stage());
  EXPECT_TRUE(stages.count("T5_Encoding") == 1 && stages.count("Total_Execution") == 1);
}

TEST_F(VideoGenerationTest, EveryViolationIsToldAtOnce) {
  StartServing();
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_prompt("");
  request.set_image("GIF89a");
  request.set_width(33);
  request.set_height(-32);
  request.set_num_frames(4);
  request.set_fps(0);
  request.set_steps(0);
  request.add_guidance_scale(101);
  request.set_shift(0);
  request.set_priority(101);
  request.add_outputs(static_cast<wan::v1::OutputKind>(99));
  request.set_request_id(std::string(129, 'x'));
  request.mutable_deadline()->set_seconds(1);
  request.set_preview_interval(-1);
  (*request.mutable_labels())[std::string(64, 'k')] = "v";
  wan::v1::Job job;
  const grpc::Status status = CreateJob(request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(ViolatedFields(status),
              UnorderedElementsAre("prompt", "image", "width", "height", "num_frames", "fps",
                                   "steps", "guidance_scale[0]", "shift", "priority", "outputs[0]",
                                   "request_id", "deadline", "preview_interval",
                                   absl::StrCat("labels[", std::string(63, 'k'), "]")));
  EXPECT_EQ(DetailOf<google::rpc::ErrorInfo>(status)->domain(), "wanserve");
  EXPECT_THAT(status.error_message(), HasSubstr("width"));
}

TEST_F(VideoGenerationTest, MoreViolationsThanATrailerHoldsStillArrive) {
  StartServing();
  wan::v1::GenerationRequest request = SmallRequest();
  for (int i = 10; i < 70; ++i) {
    (*request.mutable_labels())[absl::StrCat(std::string(60, 'k'), i)] = std::string(256, 'v');
  }
  wan::v1::Job job;
  const grpc::Status status = CreateJob(request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
  EXPECT_GT(ViolatedFields(status).size(), 10u);
}

TEST_F(VideoGenerationTest, AnEmptyCallIsAnErrorOfItsFields) {
  StartServing();
  grpc::ClientContext context;
  wan::v1::Job job;
  const grpc::Status status = video_->CreateJob(&context, {}, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ViolatedFields(status).count("model"), 1u);
}

TEST_F(VideoGenerationTest, AnImageOfTheLargestSizeArrives) {
  StartServing();
  wan::v1::GenerationRequest request = SmallRequest();
  std::string image(size_t{32} << 20, '\0');
  image.replace(0, 3, "PNG");
  request.set_image(image);
  const wan::v1::Job job = MustCreate(request);
  EXPECT_EQ(job.image_sha256(), Sha256Hex(image));
  EXPECT_EQ(job.request().image(), "");
}

TEST_F(VideoGenerationTest, ARequestThatIsMuchTooLargeIsRefused) {
  StartServing();
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_image(std::string(size_t{65} << 20, 'x'));
  wan::v1::Job job;
  const grpc::Status status = CreateJob(request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("larger than max"));
  EXPECT_EQ(MustCreate().state(), wan::v1::JOB_STATE_QUEUED) << "the server goes on";
}

TEST_F(VideoGenerationTest, AFullQueueSaysWhenToComeBack) {
  ServerConfig config = DefaultConfig();
  config.queue_capacity = 1;
  StartServing(config);
  engine_.Hold("T5_Encoding");
  MustCreate();
  engine_.AwaitHeld("T5_Encoding");
  MustCreate();
  wan::v1::Job job;
  const grpc::Status status = CreateJob(SmallRequest(), &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(status), "QUEUE_FULL");
  const auto retry = DetailOf<google::rpc::RetryInfo>(status);
  ASSERT_TRUE(retry.has_value());
  EXPECT_GT(retry->retry_delay().seconds() * 1'000'000'000 + retry->retry_delay().nanos(), 0);
}

TEST_F(VideoGenerationTest, ARequestIdNeverMakesASecondJob) {
  StartServing();
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_request_id("once");
  const wan::v1::Job first = MustCreate(request);
  EXPECT_EQ(MustCreate(request).name(), first.name());
  request.set_prompt("a dog");
  wan::v1::Job job;
  const grpc::Status status = CreateJob(request, &job);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_EQ(ReasonOf(status), "REQUEST_ID_REUSED");
}

TEST_F(VideoGenerationTest, UnknownAndMalformedNames) {
  StartServing();
  for (const grpc::Status& status : ErrorsFor("jobs/0123456789abcdef")) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(ReasonOf(status), "JOB_NOT_FOUND");
  }
  for (const std::string name : {"", "jobs/", "job/1", "jobs/../x", "jobs/A"}) {
    for (const grpc::Status& status : ErrorsFor(name)) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name;
      EXPECT_THAT(ViolatedFields(status), SizeIs(1)) << name;
    }
  }
}

TEST_F(VideoGenerationTest, JobsAreListedInPagesByState) {
  StartServing();
  engine_.Hold("T5_Encoding");
  std::vector<std::string> names;
  for (int i = 0; i < 5; ++i) names.push_back(MustCreate().name());
  engine_.AwaitHeld("T5_Encoding");

  wan::v1::ListJobsRequest request;
  request.set_page_size(3);
  request.add_states(wan::v1::JOB_STATE_QUEUED);
  wan::v1::ListJobsResponse first;
  ASSERT_TRUE(ListJobs(request, &first).ok());
  ASSERT_THAT(first.jobs(), SizeIs(3));
  EXPECT_EQ(first.jobs(0).name(), names[4]);
  EXPECT_EQ(first.jobs(0).queue_position(), 3);
  ASSERT_NE(first.next_page_token(), "");
  request.set_page_token(first.next_page_token());
  wan::v1::ListJobsResponse second;
  ASSERT_TRUE(ListJobs(request, &second).ok());
  ASSERT_THAT(second.jobs(), SizeIs(1));
  EXPECT_EQ(second.jobs(0).name(), names[1]);
  EXPECT_EQ(second.next_page_token(), "");

  request.set_page_size(-1);
  request.set_page_token("nonsense");
  const grpc::Status status = ListJobs(request, &second);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(ViolatedFields(status).count("page_size"), 1u);
}

TEST_F(VideoGenerationTest, QueuedAndRunningJobsAreCancelled) {
  StartServing();
  engine_.Hold("Step_1_Inference");
  const std::string running = MustCreate().name();
  const std::string queued = MustCreate().name();
  engine_.AwaitHeld("Step_1_Inference");
  wan::v1::Job job;
  ASSERT_TRUE(CancelJob(queued, &job).ok());
  EXPECT_EQ(job.state(), wan::v1::JOB_STATE_CANCELLED);
  ASSERT_TRUE(CancelJob(running, &job).ok());
  EXPECT_EQ(AwaitEnd(running).state(), wan::v1::JOB_STATE_CANCELLED);
  // Once more changes nothing.
  ASSERT_TRUE(CancelJob(running, &job).ok());
  EXPECT_EQ(job.state(), wan::v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(engine_.Generated().size(), 1u);
}

TEST_F(VideoGenerationTest, AFailureIsTheSameInTheJobAndInItsEvents) {
  StartServing();
  engine_.FailAt("VAE_Decoding",
                 WithReason(absl::ResourceExhaustedError("out of memory"), "OUT_OF_MEMORY"));
  const std::string name = MustCreate().name();
  std::vector<wan::v1::Event> events;
  ASSERT_TRUE(Watch(name, 0, &events).ok());
  const google::rpc::Status& told = events.back().failed().status();
  EXPECT_EQ(told.code(), static_cast<int>(grpc::StatusCode::RESOURCE_EXHAUSTED));
  EXPECT_THAT(told.message(), HasSubstr("out of memory"));
  EXPECT_EQ(DetailOf<google::rpc::ErrorInfo>(told)->reason(), "OUT_OF_MEMORY");
  const wan::v1::Job job = MustGet(name);
  EXPECT_EQ(job.state(), wan::v1::JOB_STATE_FAILED);
  EXPECT_EQ(job.error().SerializeAsString(), told.SerializeAsString());
}

class DownloadTest : public VideoGenerationTest {
 protected:
  // A job's artifact whose file is replaced by `bytes` bytes, so that it has several chunks.
  std::string MakeArtifact(size_t bytes) {
    const std::string job = MustCreate().name();
    const wan::v1::Job ended = AwaitEnd(job);
    content_.clear();
    for (size_t i = 0; i < bytes; ++i) content_ += static_cast<char>(i * 31 + i / 251);
    std::ofstream(std::filesystem::path(folder_) / "artifacts" / job.substr(5) / "video.mp4",
                  std::ios::binary)
        << content_;
    return ended.artifacts(0).name();
  }

  std::string content_;
};

TEST_F(DownloadTest, TheFileComesWithItsChecksum) {
  StartServing();
  const wan::v1::Job job = AwaitEnd(MustCreate().name());
  std::vector<wan::v1::DownloadArtifactResponse> chunks;
  ASSERT_TRUE(Download(job.artifacts(0).name(), 0, &chunks).ok());
  ASSERT_THAT(chunks, SizeIs(1));
  const wan::v1::Artifact& artifact = chunks[0].artifact();
  EXPECT_EQ(artifact.SerializeAsString(), job.artifacts(0).SerializeAsString());
  EXPECT_EQ(artifact.content_type(), "video/mp4");
  EXPECT_EQ(artifact.size_bytes(), chunks[0].data().size());
  EXPECT_EQ(artifact.sha256(), Sha256Hex(chunks[0].data()));
}

TEST_F(DownloadTest, ChunksAreAtMostAQuarterOfAMebibyteAndFollowEachOther) {
  StartServing();
  const std::string name = MakeArtifact((size_t{2} << 20) + 5);
  std::vector<wan::v1::DownloadArtifactResponse> chunks;
  ASSERT_TRUE(Download(name, 0, &chunks).ok());
  ASSERT_THAT(chunks, SizeIs(9));
  std::string whole;
  for (size_t i = 0; i < chunks.size(); ++i) {
    EXPECT_EQ(chunks[i].has_artifact(), i == 0);
    EXPECT_EQ(chunks[i].offset(), whole.size());
    EXPECT_LE(chunks[i].data().size(), size_t{256} << 10);
    whole += chunks[i].data();
  }
  EXPECT_TRUE(whole == content_);
}

TEST_F(DownloadTest, ItResumesAtAnyOffset) {
  StartServing();
  const std::string name = MakeArtifact(3000);
  for (const size_t offset : {size_t{1}, size_t{1777}, size_t{2999}}) {
    std::vector<wan::v1::DownloadArtifactResponse> chunks;
    ASSERT_TRUE(Download(name, offset, &chunks).ok());
    ASSERT_THAT(chunks, SizeIs(1));
    EXPECT_TRUE(chunks[0].has_artifact());
    EXPECT_EQ(chunks[0].offset(), offset);
    EXPECT_TRUE(chunks[0].data() == content_.substr(offset));
  }
  std::vector<wan::v1::DownloadArtifactResponse> chunks;
  ASSERT_TRUE(Download(name, 3000, &chunks).ok());
  ASSERT_THAT(chunks, SizeIs(1));
  EXPECT_TRUE(chunks[0].has_artifact());
  EXPECT_EQ(chunks[0].data(), "");
  EXPECT_EQ(Download(name, 3001, &chunks).error_code(), grpc::StatusCode::OUT_OF_RANGE);
}

TEST_F(DownloadTest, AFileThatTheJobDoesNotHave) {
  StartServing();
  const std::string job = AwaitEnd(MustCreate().name()).name();
  std::vector<wan::v1::DownloadArtifactResponse> chunks;
  const grpc::Status status = Download(job + "/artifacts/video.mkv", 0, &chunks);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "ARTIFACT_NOT_FOUND");
  for (const char* file : {"/artifacts/../../jobs.db", "/artifacts/", "/video.mp4"}) {
    EXPECT_EQ(Download(job + file, 0, &chunks).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(DownloadTest, ACallerThatGoesAwayHarmsNothing) {
  StartServing();
  const std::string name = MakeArtifact(size_t{8} << 20);
  {
    grpc::ClientContext context;
    wan::v1::DownloadArtifactRequest request;
    request.set_name(name);
    const auto stream = video_->DownloadArtifact(&context, request);
    wan::v1::DownloadArtifactResponse chunk;
    ASSERT_TRUE(stream->Read(&chunk));
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  std::vector<wan::v1::DownloadArtifactResponse> chunks;
  EXPECT_TRUE(Download(name, 0, &chunks).ok());
  EXPECT_THAT(chunks, SizeIs(32));
}

}  // namespace
}  // namespace wan::server
