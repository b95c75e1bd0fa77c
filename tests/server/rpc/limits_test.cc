// What a caller cannot make the server do, over real channels: docs/operate/limits.md.
#include <gmock/gmock.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <thread>

#include "server/process/descriptors.h"
#include "tests/server/rpc/server_fixture.h"
#include "tests/support/http_get.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/rpc_errors.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {
namespace {

using support::DetailOf;
using support::ReasonOf;
using ::testing::HasSubstr;

class LimitsTest : public ServerTest {
 protected:
  using Chunk = wan::v1::DownloadArtifactResponse;

  struct Download {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<Chunk>> reader;
  };

  // Sends bytes as the request of a method.
  grpc::Status CallWith(const std::string& method, const std::string& request) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const grpc::Slice slice(request);
    const auto call = stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(&slice, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  }

  // A video of so many bytes.
  std::string MakeVideo(size_t bytes) {
    engine_.PadOutputs(bytes);
    return AwaitEnd(MustCreate().name()).artifacts(0).name();
  }

  // A download whose first chunk has come; null, and the status, if there was none.
  std::unique_ptr<Download> Begin(const std::string& artifact, grpc::Status* status) {
    auto download = std::make_unique<Download>();
    wan::v1::DownloadArtifactRequest request;
    request.set_name(artifact);
    download->reader = video_->DownloadArtifact(&download->context, request);
    Chunk chunk;
    if (download->reader->Read(&chunk)) return download;
    *status = download->reader->Finish();
    return nullptr;
  }

  support::PrometheusText Scrape() const {
    const HostPort address = server_->metrics_address();
    const auto answer = support::HttpGet(address.host, address.port, "/metrics");
    EXPECT_TRUE(answer.ok()) << answer.status();
    auto parsed = support::PrometheusText::Parse(answer.ok() ? answer->body : "");
    return parsed.ok() ? *std::move(parsed) : support::PrometheusText();
  }
};

TEST_F(LimitsTest, BytesThatAreNoMessageAreInvalidArgumentOfEveryMethod) {
  StartServing();
  const std::string damaged("\x0a\x7f\x12");
  const struct {
    std::string method;
    std::string request;
  } methods[] = {{"VideoGeneration/Generate", "GenerateRequest"},
                 {"VideoGeneration/CreateJob", "CreateJobRequest"},
                 {"VideoGeneration/GetJob", "GetJobRequest"},
                 {"VideoGeneration/ListJobs", "ListJobsRequest"},
                 {"VideoGeneration/CancelJob", "CancelJobRequest"},
                 {"VideoGeneration/WatchJob", "WatchJobRequest"},
                 {"VideoGeneration/DownloadArtifact", "DownloadArtifactRequest"},
                 {"VideoGeneration/GetReport", "GetReportRequest"},
                 {"ModelManagement/ListModels", "ListModelsRequest"},
                 {"ModelManagement/LoadModel", "LoadModelRequest"},
                 {"ModelManagement/UnloadModel", "UnloadModelRequest"},
                 {"ModelManagement/WarmupModel", "WarmupModelRequest"},
                 {"Telemetry/WatchDevices", "WatchDevicesRequest"},
                 {"Telemetry/GetServerInfo", "GetServerInfoRequest"}};
  for (const auto& [method, request] : methods) {
    const grpc::Status status = CallWith("/wan.v1." + method, damaged);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_THAT(status.error_message(),
                HasSubstr("the request is not a valid wan.v1." + request + ": "));
    EXPECT_EQ(ReasonOf(status), "INVALID_ARGUMENT") << method;
  }
  // A name that is not UTF-8.
  EXPECT_EQ(CallWith("/wan.v1.VideoGeneration/GetJob", "\x0a\x01\xff").error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Scrape().Value("wan_grpc_request_bytes"), 0);
}

TEST_F(LimitsTest, ARequestOfManyElementsIsRefusedUnparsed) {
  StartServing();
  const std::string states(std::string("\x1a\x80\x80\x40", 4) + std::string(1 << 20, '\x01'));
  const grpc::Status listed = CallWith("/wan.v1.VideoGeneration/ListJobs", states);
  EXPECT_EQ(listed.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailOf<google::rpc::BadRequest>(listed)->field_violations(0).field(), "states");
  wan::v1::LoadModelRequest load;
  load.set_name("m");
  for (int i = 0; i < 300'000; ++i) load.add_loras();
  const grpc::Status loaded =
      CallWith("/wan.v1.ModelManagement/LoadModel", load.SerializeAsString());
  EXPECT_EQ(loaded.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(loaded.error_message(), HasSubstr("more than 524288 bytes beside its images"));
}

TEST_F(LimitsTest, ACompressedRequestIsRefusedUnread) {
  StartServing();
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  wan::v1::CreateJobRequest request;
  *request.mutable_request() = SmallRequest();
  request.mutable_request()->set_image(std::string(1 << 20, 'x'));
  wan::v1::Job job;
  EXPECT_EQ(video_->CreateJob(&context, request, &job).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(LimitsTest, AConnectionHasItsDownloadsWhichShareOneFile) {
  StartServing();
  // More than a client takes unasked.
  const std::string video = MakeVideo(size_t{32} << 20);
  const int64_t before = DescriptorsNow().open;
  std::list<std::unique_ptr<Download>> downloads;
  grpc::Status status;
  for (int i = 0; i < 64; ++i) {
    downloads.push_back(Begin(video, &status));
    ASSERT_NE(downloads.back(), nullptr) << i << ": " << status.error_message();
  }
  EXPECT_LE(DescriptorsNow().open, before + 2);
  EXPECT_EQ(Begin(video, &status), nullptr);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(ReasonOf(status), "SERVER_BUSY");
  EXPECT_TRUE(DetailOf<google::rpc::RetryInfo>(status).has_value());
  EXPECT_EQ(Scrape().Value("wan_grpc_downloads"), 64);
  // The refused one may still be on its way out.
  while (Scrape().Value("wan_grpc_streams") != 64) {
  }
  EXPECT_EQ(Scrape().Value("wan_grpc_refused_calls_total", {{"reason", "downloads"}}), 1);
  downloads.front()->context.TryCancel();
  downloads.pop_front();
  while (Begin(video, &status) == nullptr) {
  }
  for (const auto& download : downloads) download->context.TryCancel();
}

TEST_F(LimitsTest, AConnectionHasAThousandCallsAtATime) {
  StartServing();
  engine_.Hold("T5_Encoding");
  const std::string job = MustCreate().name();
  engine_.AwaitHeld("T5_Encoding");
  struct Watch {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<wan::v1::Event>> reader;
  };
  wan::v1::WatchJobRequest request;
  request.set_name(job);
  wan::v1::Event event;
  std::list<Watch> watches;
  for (int i = 0; i < 1'000; ++i) {
    Watch& watch = watches.emplace_back();
    watch.reader = video_->WatchJob(&watch.context, request);
    ASSERT_TRUE(watch.reader->Read(&event)) << i;
  }
  // One more waits at the caller until another ends.
  std::atomic<bool> answered = false;
  grpc::ClientContext context;
  std::thread further([&] {
    const auto reader = video_->WatchJob(&context, request);
    wan::v1::Event first;
    answered = reader->Read(&first);
    context.TryCancel();
  });
  // Other connections have calls of their own.
  const auto other = wan::v1::VideoGeneration::NewStub(Connect());
  wan::v1::GetJobRequest get;
  get.set_name(job);
  wan::v1::Job found;
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext of_other;
    EXPECT_TRUE(other->GetJob(&of_other, get, &found).ok());
  }
  EXPECT_EQ(Scrape().Value("wan_grpc_streams"), 1'000);
  EXPECT_FALSE(answered);
  watches.front().context.TryCancel();
  further.join();
  EXPECT_TRUE(answered);
  for (Watch& watch : watches) watch.context.TryCancel();
  engine_.Release("T5_Encoding");
}

TEST_F(LimitsTest, ACallsMetadataMayHaveEightKibibytes) {
  StartServing();
  wan::v1::ListJobsResponse jobs;
  // What gRPC itself sends, with the 32 bytes for each entry, takes less than 1 KiB.
  grpc::ClientContext fits;
  fits.AddMetadata("x-long", std::string(7 << 10, 'x'));
  const grpc::Status listed = video_->ListJobs(&fits, {}, &jobs);
  EXPECT_TRUE(listed.ok()) << listed.error_code() << " " << listed.error_message();
  grpc::ClientContext too_long;
  too_long.AddMetadata("x-long", std::string(8 << 10, 'x'));
  EXPECT_EQ(video_->ListJobs(&too_long, {}, &jobs).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  // gRPC may close the connection; others go on.
  grpc::ClientContext next;
  EXPECT_TRUE(wan::v1::VideoGeneration::NewStub(Connect())->ListJobs(&next, {}, &jobs).ok());
}

TEST_F(LimitsTest, EventsThatNobodyReadsEnd) {
  StartServing();
  // More than gRPC takes for a reader that does not read.
  engine_.FailAt("T5_Encoding", absl::InternalError(std::string(16 << 20, 'x')));
  const std::string job = MustCreate().name();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto stub = wan::v1::VideoGeneration::NewStub(grpc::CreateCustomChannel(
      ToString(server_->grpc_address()), grpc::InsecureChannelCredentials(), arguments));
  wan::v1::WatchJobRequest request;
  request.set_name(job);
  wan::v1::Event event;
  {
    grpc::ClientContext context;
    const auto reader = stub->WatchJob(&context, request);
    bool failed = false;
    while (reader->Read(&event)) failed = event.has_failed();
    EXPECT_TRUE(failed);
    EXPECT_TRUE(reader->Finish().ok());
  }
  while (Scrape().Value("wan_grpc_streams") != 0) {
  }
  grpc::ClientContext context;
  const auto reader = stub->WatchJob(&context, request);
  ASSERT_TRUE(reader->Read(&event));
  clock_.Advance(absl::Seconds(59));
  EXPECT_EQ(Scrape().Value("wan_grpc_streams"), 1);
  // What the server had just handed to gRPC may have begun the time anew.
  while (Scrape().Value("wan_grpc_streams") == 1) clock_.Advance(absl::Seconds(60));
  while (reader->Read(&event)) {
  }
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(LimitsTest, ADownloadThatNobodyReadsEnds) {
  StartServing();
  grpc::Status status;
  const auto download = Begin(MakeVideo(size_t{32} << 20), &status);
  ASSERT_NE(download, nullptr) << status.error_message();
  clock_.Advance(absl::Seconds(59));
  EXPECT_EQ(Scrape().Value("wan_grpc_downloads"), 1);
  // What the server had just handed to gRPC may have begun the time anew.
  while (Scrape().Value("wan_grpc_downloads") == 1) clock_.Advance(absl::Seconds(60));
  LimitsTest::Chunk chunk;
  while (download->reader->Read(&chunk)) {
  }
  EXPECT_EQ(download->reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(LimitsTest, ADownloadThatIsReadSlowlyGoesOn) {
  StartServing();
  constexpr size_t kBytes = size_t{4} << 20;
  grpc::Status status;
  const auto download = Begin(MakeVideo(kBytes), &status);
  ASSERT_NE(download, nullptr) << status.error_message();
  LimitsTest::Chunk chunk;
  uint64_t end = 0;
  while (download->reader->Read(&chunk)) {
    end = chunk.offset() + chunk.data().size();
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_TRUE(download->reader->Finish().ok());
  EXPECT_EQ(end, kBytes);
}

}  // namespace
}  // namespace wan::server
