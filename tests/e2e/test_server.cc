#include "tests/e2e/test_server.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include "google/protobuf/struct.pb.h"
#include "google/protobuf/util/json_util.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "tests/support/http_get.h"

namespace wan::e2e {
namespace {

namespace health = grpc::health::v1;

}  // namespace

std::string ServerOptions::TinyModel() {
  return std::string("tiny=") + WAN_CHECKPOINT_DIR + "/ti2v-5b/original";
}

TestServer::TestServer(ServerOptions options, bool await_serving)
    : stderr_path_(options.data_dir + "/server.log") {
  std::vector<std::string> argv = {std::string(WAN_BINARY_DIR) + "/wanserve",
                                   "--listen",
                                   "127.0.0.1:0",
                                   "--metrics-listen",
                                   "127.0.0.1:0",
                                   "--http-listen",
                                   "none",
                                   "--data-dir",
                                   options.data_dir};
  for (const std::string& model : options.models) argv.insert(argv.end(), {"--model", model});
  argv.insert(argv.end(), options.flags.begin(), options.flags.end());
  // The same tests may be run on a group: WAN_E2E_DEVICE=cpu,cpu.
  const char* const device = std::getenv("WAN_E2E_DEVICE");
  if (device != nullptr && std::find(argv.begin(), argv.end(), "--device") == argv.end()) {
    argv.insert(argv.end(), {"--device", device});
  }
  process_ = std::make_unique<Process>(argv, stderr_path_);

  const std::string line = process_->ReadLine();
  google::protobuf::Struct announcement;
  const auto parsed = google::protobuf::util::JsonStringToMessage(line, &announcement);
  EXPECT_TRUE(parsed.ok()) << "stdout: '" << line << "'\n" << Log();
  const auto& fields = announcement.fields();
  EXPECT_EQ(fields.count("event") ? fields.at("event").string_value() : "", "listening") << Log();
  if (!fields.count("grpc") || !fields.count("metrics")) return;
  grpc_address_ = fields.at("grpc").string_value();
  metrics_address_ = fields.at("metrics").string_value();
  channel_ = grpc::CreateChannel(grpc_address_, grpc::InsecureChannelCredentials());
  videos_ = wan::v1::VideoGeneration::NewStub(channel_);
  models_ = wan::v1::ModelManagement::NewStub(channel_);
  telemetry_ = wan::v1::Telemetry::NewStub(channel_);
  if (await_serving) AwaitServing();
}

void TestServer::Kill() {
  process_->Signal(SIGKILL);
  process_->Wait();
}

int TestServer::Terminate() {
  process_->Signal(SIGTERM);
  return process_->Wait();
}

std::string TestServer::Log() const { return ReadWholeFile(stderr_path_); }

std::string TestServer::AwaitLog(const std::string& text) const {
  return AwaitInFile(stderr_path_, text);
}

void TestServer::AwaitServing() {
  const auto stub = health::Health::NewStub(channel_);
  grpc::ClientContext context;
  const auto reader = stub->Watch(&context, health::HealthCheckRequest());
  health::HealthCheckResponse response;
  while (reader->Read(&response)) {
    if (response.status() == health::HealthCheckResponse::SERVING) {
      context.TryCancel();
      reader->Finish();
      return;
    }
  }
  ADD_FAILURE() << "the server never served: " << reader->Finish().error_message() << "\n" << Log();
}

int TestServer::HealthNow(const std::string& service) {
  const auto stub = health::Health::NewStub(channel_);
  grpc::ClientContext context;
  health::HealthCheckRequest request;
  request.set_service(service);
  health::HealthCheckResponse response;
  const grpc::Status status = stub->Check(&context, request, &response);
  return status.ok() ? response.status() : -1;
}

wan::v1::Job TestServer::Submit(const wan::v1::GenerationRequest& request) {
  grpc::ClientContext context;
  wan::v1::CreateJobRequest create;
  *create.mutable_request() = request;
  wan::v1::Job job;
  const grpc::Status status = videos_->CreateJob(&context, create, &job);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return job;
}

wan::v1::Job TestServer::Get(const std::string& job) {
  grpc::ClientContext context;
  wan::v1::GetJobRequest request;
  request.set_name(job);
  wan::v1::Job answer;
  const grpc::Status status = videos_->GetJob(&context, request, &answer);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return answer;
}

std::vector<wan::v1::Event> TestServer::Watch(
    const std::string& job, int64_t after_sequence,
    const std::function<bool(const wan::v1::Event&)>& stop) {
  grpc::ClientContext context;
  wan::v1::WatchJobRequest request;
  request.set_name(job);
  request.set_after_sequence(after_sequence);
  const auto reader = videos_->WatchJob(&context, request);
  std::vector<wan::v1::Event> events;
  wan::v1::Event event;
  while (reader->Read(&event)) {
    events.push_back(event);
    if (stop && stop(event)) {
      context.TryCancel();
      break;
    }
  }
  reader->Finish();
  return events;
}

wan::v1::Job TestServer::Await(const std::string& job) {
  Watch(job);
  return Get(job);
}

std::string TestServer::Download(const std::string& artifact, uint64_t offset) {
  grpc::ClientContext context;
  wan::v1::DownloadArtifactRequest request;
  request.set_name(artifact);
  request.set_offset(offset);
  const auto reader = videos_->DownloadArtifact(&context, request);
  std::string bytes;
  wan::v1::DownloadArtifactResponse chunk;
  while (reader->Read(&chunk)) {
    EXPECT_EQ(chunk.offset(), offset + bytes.size());
    bytes += chunk.data();
  }
  const grpc::Status status = reader->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  return bytes;
}

std::string TestServer::Metrics() {
  const size_t colon = metrics_address_.rfind(':');
  const auto response =
      support::HttpGet(metrics_address_.substr(0, colon),
                       std::atoi(metrics_address_.c_str() + colon + 1), "/metrics");
  EXPECT_TRUE(response.ok()) << response.status();
  return response.ok() ? response->body : "";
}

wan::v1::GenerationRequest TinyRequest(int steps, int64_t seed) {
  wan::v1::GenerationRequest request;
  request.set_model("tiny");
  request.set_prompt("A red cat walks on the beach.");
  request.set_width(64);
  request.set_height(32);
  request.set_num_frames(5);
  request.set_steps(steps);
  request.set_seed(seed);
  return request;
}

std::vector<std::string> ViolatedFields(const grpc::Status& status) {
  google::rpc::Status rich;
  std::vector<std::string> fields;
  if (!rich.ParseFromString(status.error_details())) return fields;
  for (const auto& detail : rich.details()) {
    google::rpc::BadRequest bad_request;
    if (!detail.UnpackTo(&bad_request)) continue;
    for (const auto& violation : bad_request.field_violations()) {
      fields.push_back(violation.field());
    }
  }
  return fields;
}

bool IsFinalEvent(const wan::v1::Event& event) {
  return event.has_completed() || event.has_failed() || event.has_cancelled();
}

}  // namespace wan::e2e
