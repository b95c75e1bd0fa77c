// The server as a whole: health, reflection, metrics, start and stop.
#include "server/server.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <thread>

#include "server/jobs/progress_watch.h"
#include "tests/server/rpc/reflection.h"
#include "tests/server/rpc/server_fixture.h"
#include "tests/support/http_get.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/rpc_errors.h"
#include "wan/v1/model_management.grpc.pb.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {
namespace {

using support::DetailOf;
using support::ReasonOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLoading[] = "Model_Initialization";
const char* const kServices[] = {"", "wan.v1.VideoGeneration", "wan.v1.ModelManagement",
                                 "wan.v1.Telemetry", "wan.v1.Administration"};

class WholeServerTest : public ServerTest {
 protected:
  support::PrometheusText Scrape() {
    const HostPort address = server_->metrics_address();
    const auto answer = support::HttpGet(address.host, address.port, "/metrics");
    EXPECT_TRUE(answer.ok()) << answer.status();
    if (!answer.ok()) return {};
    auto parsed = support::PrometheusText::Parse(answer->body);
    EXPECT_TRUE(parsed.ok()) << parsed.status() << "\n" << answer->body;
    return parsed.ok() ? *std::move(parsed) : support::PrometheusText();
  }

  absl::Status StartError(const ServerConfig& config) {
    fakes::FakeEngine engine(&clock_);
    Logger logger(LogLevel::kError, LogFormat::kJson, clock_, [](auto) {});
    return Server::Start(config, {&engine}, clock_, logger).status();
  }
};

TEST_F(WholeServerTest, HealthFollowsTheModels) {
  engine_.Hold(kLoading);
  Start(DefaultConfig());
  engine_.AwaitHeld(kLoading);
  for (const char* const service : kServices) EXPECT_FALSE(IsServing(service)) << service;
  engine_.Release(kLoading);
  for (const char* const service : kServices) AwaitHealth(true, service);
}

TEST_F(WholeServerTest, AJobWithoutProgressEndsTheLiveness) {
  StartServing();
  engine_.TakeTime("Step_Inference", absl::Seconds(2));
  AwaitEnd(MustCreate().name());  // from now on a step can be estimated
  engine_.TakeTime("Step_Inference", absl::ZeroDuration());
  engine_.Hold("Step_1_Inference");
  const std::string job = MustCreate().name();
  engine_.AwaitHeld("Step_1_Inference");
  const auto livez = [this] {
    const auto answer = support::HttpGet("127.0.0.1", server_->metrics_address().port, "/livez");
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->status : 0;
  };
  EXPECT_TRUE(IsServing("liveness"));
  EXPECT_EQ(livez(), 200);
  clock_.Advance(ProgressWatch::kLeast + absl::Seconds(1));
  EXPECT_FALSE(IsServing("liveness"));
  EXPECT_EQ(livez(), 503);
  EXPECT_TRUE(IsServing()) << "readiness is another question";
  EXPECT_THAT(Log(), HasSubstr("Step_1_Inference of " + job + " makes no progress"));
  engine_.Release("Step_1_Inference");
  AwaitEnd(job);
  EXPECT_TRUE(IsServing("liveness"));
  EXPECT_EQ(support::HttpGet("127.0.0.1", server_->metrics_address().port, "/readyz")->status, 200);
}

TEST_F(WholeServerTest, AnUnknownServiceHasNoHealth) {
  StartServing();
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service("wan.v1.Nothing");
  grpc::health::v1::HealthCheckResponse response;
  EXPECT_EQ(health_->Check(&context, request, &response).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(WholeServerTest, EachModelHasAHealthOfItsOwn) {
  ServerConfig config = DefaultConfig();
  config.models = {{"broken", "/broken"}, {"m", "synthetic:ti2v-5b"}};
  engine_.FailAt(kLoading, absl::DataLossError("model.safetensors is cut off"));
  engine_.Hold("Warmup");
  Start(config);
  engine_.AwaitHeld("Warmup");
  const std::string m = "wan.v1.VideoGeneration/models/m";
  EXPECT_FALSE(IsServing(m)) << "it is being loaded";
  EXPECT_FALSE(IsServing("wan.v1.VideoGeneration/models/broken"));
  engine_.Release("Warmup");
  AwaitHealth(true, m);
  EXPECT_FALSE(IsServing("wan.v1.VideoGeneration/models/broken"));

  // One stream sees it go and come back.
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(m);
  const auto stream = health_->Watch(&context, request);
  using Response = grpc::health::v1::HealthCheckResponse;
  const auto next = [&stream] {
    Response response;
    return stream->Read(&response) ? response.status() : Response::UNKNOWN;
  };
  EXPECT_EQ(next(), Response::SERVING);
  const auto models = wan::v1::ModelManagement::NewStub(channel_);
  const auto ask = [&models](auto method, auto message) {
    message.set_name("m");
    grpc::ClientContext call;
    wan::v1::Model model;
    const grpc::Status status = (models.get()->*method)(&call, message, &model);
    EXPECT_TRUE(status.ok()) << status.error_message();
  };
  ask(&wan::v1::ModelManagement::Stub::UnloadModel, wan::v1::UnloadModelRequest());
  EXPECT_EQ(next(), Response::NOT_SERVING);
  ask(&wan::v1::ModelManagement::Stub::LoadModel, wan::v1::LoadModelRequest());
  EXPECT_EQ(next(), Response::SERVING);
  context.TryCancel();
}

TEST_F(WholeServerTest, AnUnknownModelHasNoHealth) {
  StartServing();
  for (const char* const service :
       {"wan.v1.VideoGeneration/models/none", "wan.v1.VideoGeneration/models/",
        "wan.v1.VideoGeneration/models/models/m", "models/m", "wan.v1.Telemetry/models/m"}) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    grpc::health::v1::HealthCheckResponse response;
    EXPECT_EQ(health_->Check(&context, request, &response).error_code(),
              grpc::StatusCode::NOT_FOUND)
        << service;
    grpc::ClientContext watch;
    const auto stream = health_->Watch(&watch, request);
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::SERVICE_UNKNOWN);
    watch.TryCancel();
  }
}

TEST_F(WholeServerTest, AModelThatIsNotWarmedUpYetIsNotServed) {
  engine_.Hold("Warmup");
  Start(DefaultConfig());
  engine_.AwaitHeld("Warmup");
  EXPECT_EQ(engine_.Loads(), 1);
  EXPECT_FALSE(IsServing());
  engine_.Release("Warmup");
  AwaitHealth(true);
}

TEST_F(WholeServerTest, OneDamagedModelOfTwoLeavesTheOtherServing) {
  ServerConfig config = DefaultConfig();
  config.models = {{"broken", "/broken"}, {"m", "synthetic:ti2v-5b"}};
  engine_.FailAt(kLoading, absl::DataLossError("model.safetensors is cut off"));
  StartServing(config);
  EXPECT_THAT(Log(), HasSubstr("model.safetensors is cut off"));
  EXPECT_EQ(AwaitEnd(MustCreate().name()).state(), wan::v1::JOB_STATE_COMPLETED);
}

TEST_F(WholeServerTest, ALongReasonFitsTheTrailerOfHealth) {
  engine_.FailAt(kLoading, absl::DataLossError(std::string(20'000, 'x')));
  Start(DefaultConfig());
  wan::v1::ServerInfo why;
  while (why.not_serving_reasons_size() == 0 ||
         why.not_serving_reasons(0).reason() != "MODEL_FAILED") {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckResponse response;
    const grpc::Status status = health_->Check(&context, {}, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    const auto& trailer = context.GetServerTrailingMetadata();
    const auto found = trailer.find("wan-not-serving-bin");
    ASSERT_NE(found, trailer.end());
    ASSERT_TRUE(why.ParseFromArray(found->second.data(), static_cast<int>(found->second.size())));
  }
  const std::string& message = why.not_serving_reasons(0).message();
  EXPECT_THAT(message, testing::StartsWith("model 'm' could not be loaded (xxx"));
  EXPECT_THAT(message, testing::EndsWith("xxx..."));
  EXPECT_LT(message.size(), 510u);
}

TEST_F(WholeServerTest, ReflectionKnowsEveryServiceThatItLists) {
  StartServing();
  for (const ReflectionVersion version : {ReflectionVersion::kV1, ReflectionVersion::kV1Alpha}) {
    const std::vector<std::string> listed = ListServices(channel_, version);
    EXPECT_THAT(listed, ::testing::UnorderedElementsAre(
                            "wan.v1.VideoGeneration", "wan.v1.ModelManagement", "wan.v1.Telemetry",
                            "wan.v1.Administration", "grpc.health.v1.Health",
                            "grpc.reflection.v1.ServerReflection",
                            "grpc.reflection.v1alpha.ServerReflection"));
    for (const std::string& service : listed) {
      // What a client builds from the answer is complete: every import is there, before its user.
      google::protobuf::DescriptorPool pool;
      for (const std::string& file : FilesOf(channel_, service, version)) {
        google::protobuf::FileDescriptorProto proto;
        ASSERT_TRUE(proto.ParseFromString(file));
        ASSERT_NE(pool.BuildFile(proto), nullptr) << proto.name();
      }
      EXPECT_NE(pool.FindServiceByName(service), nullptr) << service;
    }
    EXPECT_THAT(FilesOf(channel_, "wan.v1.Nothing", version), ::testing::IsEmpty());
  }
}

TEST_F(WholeServerTest, MetricsTellWhatHappened) {
  StartServing();
  engine_.TakeTime("Step_Inference", absl::Seconds(2));
  AwaitEnd(MustCreate().name());
  engine_.Hold("T5_Encoding");
  MustCreate();
  engine_.AwaitHeld("T5_Encoding");
  MustCreate();
  const support::PrometheusText text = Scrape();
  EXPECT_EQ(text.Value("wan_active_jobs", {{"state", "running"}}), 1);
  EXPECT_EQ(text.Value("wan_queue_length", {{"model", "m"}}), 1);
  EXPECT_EQ(text.Value("wan_queue_capacity"), 100);
  EXPECT_EQ(
      text.Value("wan_jobs_total", {{"model", "m"}, {"quality", "exact"}, {"state", "completed"}}),
      1);
  EXPECT_EQ(text.Value("wan_job_seconds_count",
                       {{"model", "m"}, {"quality", "exact"}, {"state", "completed"}}),
            1);
  EXPECT_EQ(
      text.Value("wan_step_seconds_count",
                 {{"model", "m"}, {"quality", "exact"}, {"expert", "only"}, {"shape", "64x32x5"}}),
      3);
  EXPECT_EQ(
      text.Value("wan_step_seconds_sum",
                 {{"model", "m"}, {"quality", "exact"}, {"expert", "only"}, {"shape", "64x32x5"}}),
      6);
  EXPECT_EQ(text.Value("wan_stage_seconds_count",
                       {{"stage", "Model_Initialization"}, {"model", "m"}, {"quality", ""}}),
            1);
  EXPECT_EQ(text.Value("wan_stage_seconds_count",
                       {{"stage", "Total_Execution"}, {"model", "m"}, {"quality", "exact"}}),
            1);
  EXPECT_EQ(text.Value("wan_stage_seconds_count",
                       {{"stage", "Queue_Wait"}, {"model", "m"}, {"quality", "exact"}}),
            2);
  EXPECT_GT(text.Value("wan_queued_seconds", {{"model", "m"}}).value_or(0), 0);
  EXPECT_EQ(text.Value("wan_execution_seconds_total",
                       {{"model", "m"}, {"quality", "exact"}, {"stage", "Step_Inference"}}),
            6);
  EXPECT_EQ(
      text.Value("wan_inflight_stage_seconds",
                 {{"group", "0"}, {"model", "m"}, {"quality", "exact"}, {"stage", "T5_Encoding"}}),
      0);
  EXPECT_EQ(text.Value("wan_queue_oldest_seconds", {{"model", "m"}}), 0);
  EXPECT_EQ(text.Value("wan_queue_unestimated", {{"model", "m"}}), 0);
  EXPECT_GE(text.Value("wan_grpc_call_seconds_count",
                       {{"code", "OK"}, {"method", "wan.v1.VideoGeneration/CreateJob"}})
                .value_or(0),
            3);
  // There before the first such call.
  EXPECT_EQ(text.Value("wan_grpc_calls_total",
                       {{"code", "DATA_LOSS"}, {"method", "wan.v1.VideoGeneration/GetReceipt"}}),
            0);
  EXPECT_EQ(text.Find("wan_http_requests_total"), nullptr) << "there is no HTTP address";
  EXPECT_GT(text.Value("wan_store_write_seconds_count", {{"operation", "insert"}}).value_or(0), 0);
  EXPECT_GT(text.Value("wan_database_bytes").value_or(0), 0);
  EXPECT_GT(text.Value("wan_artifact_bytes").value_or(0), 0);
  EXPECT_EQ(text.Value("wan_component_memory_bytes",
                       {{"model", "m"}, {"component", "vae"}, {"device", "cpu"}}),
            200);
  EXPECT_EQ(text.Value("wan_cpu_percent"), 25);
  EXPECT_EQ(text.Find("wan_gpu_memory_used_bytes"), nullptr);
  EXPECT_NE(text.Find("wan_build_info"), nullptr);
  engine_.Release("T5_Encoding");
}

TEST_F(WholeServerTest, LogsAreJsonAndKeepPromptsToThemselves) {
  StartServing();
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_prompt("a secret prompt");
  const std::string job = MustCreate(request).name();
  AwaitEnd(job);
  StopServer();
  EXPECT_THAT(Log(), HasSubstr("\"job\":\"" + job + "\""));
  EXPECT_THAT(Log(), HasSubstr("\"state\":\"JOB_STATE_COMPLETED\""));
  EXPECT_THAT(Log(), HasSubstr("\"stage\":\"T5_Encoding\""));
  EXPECT_THAT(Log(), Not(HasSubstr("secret")));
}

TEST_F(WholeServerTest, AGracefulStopFinishesTheRunningJob) {
  StartServing();
  engine_.Hold("Step_1_Inference");
  const std::string job = MustCreate().name();
  engine_.AwaitHeld("Step_1_Inference");
  std::thread stopper([this] { server_->Stop(); });
  AwaitHealth(false);
  wan::v1::Job refused;
  // Health changes first; the queue closes right after.
  grpc::Status status;
  do {
    status = CreateJob(SmallRequest(), &refused);
  } while (status.ok());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(status), "SERVER_STOPPING");
  EXPECT_TRUE(DetailOf<google::rpc::RetryInfo>(status).has_value());
  EXPECT_EQ(MustGet(job).state(), wan::v1::JOB_STATE_RUNNING) << "reading still works";
  engine_.Release("Step_1_Inference");
  stopper.join();
  server_.reset();

  engine_.Hold(kLoading);  // what the folder holds, not what runs now
  Start(DefaultConfig());
  const wan::v1::Job ended = MustGet(job);
  EXPECT_EQ(ended.state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(ended.attempt(), 1);
  engine_.Release(kLoading);
}

TEST_F(WholeServerTest, TheGraceTimeEndsAndTheJobRunsAgainAfterTheRestart) {
  StartServing();
  engine_.Hold("Step_1_Inference");
  const std::string job = MustCreate().name();
  engine_.AwaitHeld("Step_1_Inference");
  std::vector<wan::v1::Event> events;
  grpc::Status watched;
  std::thread watcher([&] { watched = Watch(job, 0, &events); });
  StopWhileTimePasses();
  watcher.join();
  EXPECT_EQ(watched.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(watched), "SERVER_STOPPING");
  server_.reset();

  engine_.Release("Step_1_Inference");
  StartServing();
  const wan::v1::Job ended = AwaitEnd(job);
  EXPECT_EQ(ended.state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(ended.attempt(), 2);
}

TEST_F(WholeServerTest, ShutdownModeRequeueDoesNotWait) {
  ServerConfig config = DefaultConfig();
  config.shutdown_mode = StopMode::kRequeue;
  StartServing(config);
  engine_.Hold("Step_1_Inference");
  const std::string job = MustCreate().name();
  engine_.AwaitHeld("Step_1_Inference");
  StopServer();  // returns although nothing releases the engine
  engine_.Release("Step_1_Inference");
  StartServing();
  const wan::v1::Job ended = AwaitEnd(job);
  EXPECT_EQ(ended.state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(ended.attempt(), 2);
}

TEST_F(WholeServerTest, AddressesThatAreTakenAreNamed) {
  StartServing();
  ServerConfig config = DefaultConfig();
  config.data_dir += "/other";
  config.listen = server_->grpc_address();
  absl::Status status = StartError(config);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("listen: cannot listen on " + ToString(config.listen)));
  config = DefaultConfig();
  config.data_dir += "/other";
  config.metrics_listen = server_->metrics_address();
  status = StartError(config);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("metrics_listen: cannot listen on"));
}

TEST_F(WholeServerTest, ADataFolderHasOneServer) {
  StartServing();
  const absl::Status status = StartError(DefaultConfig());
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(folder_));
  EXPECT_EQ(AwaitEnd(MustCreate().name()).state(), wan::v1::JOB_STATE_COMPLETED);
}

TEST_F(WholeServerTest, Ipv6) {
  ServerConfig config = DefaultConfig();
  config.listen = {"::1", 0};
  config.metrics_listen = {"::1", 0};
  if (absl::IsUnavailable(StartError(config))) GTEST_SKIP() << "this machine has no IPv6";
  StartServing(config);
  EXPECT_EQ(server_->grpc_address().host, "::1");
  EXPECT_NE(Scrape().Find("wan_build_info"), nullptr);
  EXPECT_EQ(AwaitEnd(MustCreate().name()).state(), wan::v1::JOB_STATE_COMPLETED);
}

TEST_F(WholeServerTest, StopsWithOpenStreamsOfEveryKind) {
  StartServing();
  engine_.Hold("Step_1_Inference");
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([this] {
      grpc::ClientContext context;
      wan::v1::GenerateRequest request;
      *request.mutable_request() = SmallRequest();
      const auto stream = video_->Generate(&context, request);
      wan::v1::Event event;
      while (stream->Read(&event)) {
      }
      // The running job is cancelled, since its caller cannot wait for the restart; those of the
      // queue have not ended when the server has.
      const grpc::Status status = stream->Finish();
      EXPECT_TRUE(status.ok() ? event.has_cancelled()
                              : status.error_code() == grpc::StatusCode::UNAVAILABLE)
          << status.error_message();
    });
  }
  engine_.AwaitHeld("Step_1_Inference");
  grpc::ClientContext context;
  const auto health = health_->Watch(&context, {});
  grpc::health::v1::HealthCheckResponse response;
  ASSERT_TRUE(health->Read(&response));
  StopWhileTimePasses();
  EXPECT_TRUE(health->Read(&response));
  EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace wan::server
