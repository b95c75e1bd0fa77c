#include "tests/server/rpc/server_fixture.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <thread>

namespace wan::server {
namespace {

using HealthResponse = grpc::health::v1::HealthCheckResponse;

std::string NewFolder() {
  std::string path = ::testing::TempDir() + "/wan_server_XXXXXX";
  EXPECT_NE(::mkdtemp(path.data()), nullptr);
  return path;
}

}  // namespace

ServerTest::ServerTest()
    : folder_(NewFolder()), logger_(LogLevel::kDebug, LogFormat::kJson, clock_, [this](auto line) {
        absl::MutexLock lock(&log_mutex_);
        log_ += line;
      }) {}

ServerTest::~ServerTest() {
  if (server_ != nullptr) StopWhileTimePasses();
  server_.reset();
  std::filesystem::remove_all(folder_);
}

ServerConfig ServerTest::DefaultConfig() const {
  ServerConfig config;
  config.listen = {"127.0.0.1", 0};
  config.metrics_listen = {"127.0.0.1", 0};
  config.data_dir = folder_;
  config.models = {{"m", "synthetic:ti2v-5b"}};
  return config;
}

void ServerTest::Start(const ServerConfig& config) {
  auto started = Server::Start(config, {&engine_}, clock_, logger_, {{"fake", "1.0"}});
  ASSERT_TRUE(started.ok()) << started.status();
  server_ = *std::move(started);
  channel_ = Connect();
  video_ = wan::v1::VideoGeneration::NewStub(channel_);
  health_ = grpc::health::v1::Health::NewStub(channel_);
}

void ServerTest::StartServing(const ServerConfig& config) {
  Start(config);
  AwaitHealth(true);
}

void ServerTest::StopServer() {
  server_->Stop();
  server_.reset();
}

void ServerTest::StopWhileTimePasses() {
  std::atomic<bool> stopped = false;
  std::thread stopper([&] {
    server_->Stop();
    stopped = true;
  });
  // A call between two steps of time, so that time does not run ahead of what streams have in
  // flight: their readers would seem to stall.
  while (!stopped) {
    clock_.Advance(absl::Milliseconds(500));
    if (health_ == nullptr) continue;  // the test has channels of its own
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckResponse response;
    (void)health_->Check(&context, {}, &response);
  }
  stopper.join();
}

std::shared_ptr<grpc::Channel> ServerTest::Connect() const {
  grpc::ChannelArguments arguments;
  // Each has a connection of its own, as different callers have.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  // Otherwise gRPC may take ever more for a reader that does not read, and a download that should
  // wait for it ends.
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  return grpc::CreateCustomChannel(ToString(server_->grpc_address()),
                                   grpc::InsecureChannelCredentials(), arguments);
}

void ServerTest::AwaitHealth(bool serving, const std::string& service) {
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  const auto stream = health_->Watch(&context, request);
  HealthResponse response;
  while (stream->Read(&response)) {
    if (response.status() == (serving ? HealthResponse::SERVING : HealthResponse::NOT_SERVING)) {
      context.TryCancel();
      return;
    }
  }
  FAIL() << "health ended with " << stream->Finish().error_message();
}

bool ServerTest::IsServing(const std::string& service) {
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  HealthResponse response;
  const grpc::Status status = health_->Check(&context, request, &response);
  EXPECT_TRUE(status.ok()) << service << ": " << status.error_message();
  return response.status() == HealthResponse::SERVING;
}

wan::v1::GenerationRequest ServerTest::SmallRequest() {
  wan::v1::GenerationRequest request;
  request.set_model("m");
  request.set_prompt("a cat on a sofa");
  return request;
}

grpc::Status ServerTest::CreateJob(const wan::v1::GenerationRequest& request, wan::v1::Job* job) {
  grpc::ClientContext context;
  wan::v1::CreateJobRequest create;
  *create.mutable_request() = request;
  return video_->CreateJob(&context, create, job);
}

wan::v1::Job ServerTest::MustCreate(const wan::v1::GenerationRequest& request) {
  wan::v1::Job job;
  const grpc::Status status = CreateJob(request, &job);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return job;
}

wan::v1::Job ServerTest::MustGet(const std::string& name) {
  grpc::ClientContext context;
  wan::v1::GetJobRequest request;
  request.set_name(name);
  wan::v1::Job job;
  const grpc::Status status = video_->GetJob(&context, request, &job);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return job;
}

grpc::Status ServerTest::Watch(const std::string& job, int64_t after_sequence,
                               std::vector<wan::v1::Event>* events) {
  grpc::ClientContext context;
  wan::v1::WatchJobRequest request;
  request.set_name(job);
  request.set_after_sequence(after_sequence);
  const auto stream = video_->WatchJob(&context, request);
  wan::v1::Event event;
  while (stream->Read(&event)) events->push_back(event);
  return stream->Finish();
}

wan::v1::Job ServerTest::AwaitEnd(const std::string& name) {
  std::vector<wan::v1::Event> events;
  const grpc::Status status = Watch(name, 0, &events);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return MustGet(name);
}

std::string ServerTest::Log() const {
  absl::MutexLock lock(&log_mutex_);
  return log_;
}

}  // namespace wan::server
