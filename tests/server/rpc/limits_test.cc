// What a caller cannot make the server do, over real channels: docs/limits.md.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <list>
#include <thread>

#include "server/rpc/descriptors.h"
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
