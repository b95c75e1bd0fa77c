#include "server/rpc/server.h"

#include <google/protobuf/stubs/common.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/version_info.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/jobs/job_service.h"
#include "server/logging/activity_log.h"
#include "server/metrics/metrics.h"
#include "server/metrics/metrics_server.h"
#include "server/rpc/admission.h"
#include "server/rpc/connection_acceptor.h"
#include "server/rpc/descriptors.h"
#include "server/rpc/health_reporter.h"
#include "server/rpc/memory_trimmer.h"
#include "server/rpc/reflection_service.h"
#include "server/rpc/services.h"
#include "server/rpc/worker_pool.h"

namespace wan::server {
namespace {

constexpr int kWorkers = 4;
// An image may have 32 MiB. One that is somewhat larger is still read, so that it is refused as
// what it is, a violation of the field `image`; gRPC's own limit cuts the call off without a
// detail.
constexpr int kMaxRequestBytes = 64 << 20;
// What gRPC may hold of requests that arrive and answers that wait. Above it gRPC narrows its
// windows, and then ends calls.
constexpr size_t kGrpcBytes = size_t{512} << 20;
// Calls of one connection at a time; further ones wait at the caller.
constexpr int kCallsPerConnection = 1'000;
// How a caller is noticed that vanished without a word, and how often one may ask the same of us.
constexpr int kKeepaliveMillis = 20'000;
constexpr int kKeepaliveTimeoutMillis = 10'000;
constexpr int kShortestPingMillis = 5'000;
// How long a connection may take to begin as HTTP/2 does. One that says nothing is closed then.
constexpr int kHandshakeMillis = 10'000;
// For calls that are still being answered when everything else has stopped.
constexpr std::chrono::seconds kLastCalls{2};

constexpr const char* kServiceNames[] = {"", "wan.v1.VideoGeneration", "wan.v1.ModelManagement",
                                         "wan.v1.Telemetry"};

std::vector<std::string> NamesOf(const std::vector<ModelSpec>& models) {
  std::vector<std::string> names;
  for (const ModelSpec& model : models) names.push_back(model.name);
  return names;
}

ServerFacts FactsOf(Clock& clock, std::map<std::string, std::string> libraries) {
  libraries["grpc"] = GRPC_CPP_VERSION_STRING;
  libraries["protobuf"] = google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
  return {WAN_VERSION, std::move(libraries), clock.Now()};
}

ConnectionLimits ConnectionLimitsOf(const ServerConfig& config) {
  ConnectionLimits limits;
  limits.total =
      config.max_connections > 0 ? config.max_connections : ConnectionsFor(DescriptorsNow().limit);
  limits.per_address = std::min(config.max_connections_per_address, std::max(1, limits.total / 2));
  limits.unacknowledged = std::chrono::milliseconds(kKeepaliveTimeoutMillis);
  return limits;
}

// Tells whoever started the server.
class DeviceLossListener final : public StateListener {
 public:
  explicit DeviceLossListener(std::function<void()> tell) : tell_(std::move(tell)) {}
  void OnDeviceLost(const absl::Status&) override { std::call_once(told_, tell_); }

 private:
  const std::function<void()> tell_;
  std::once_flag told_;
};

StopMode StopModeOf(ShutdownMode mode) {
  return mode == ShutdownMode::kFinish ? StopMode::kFinish : StopMode::kRequeue;
}

}  // namespace

// In the order of their making; they go in the reverse one.
struct Server::Parts {
  Parts(const ServerConfig& server_config, Engine& server_engine, Clock& server_clock,
        Logger& server_logger, std::function<void()> on_device_lost)
      : config(server_config),
        engine(server_engine),
        clock(server_clock),
        logger(server_logger),
        activity(server_logger),
        health(NamesOf(server_config.models)),
        device_loss(std::move(on_device_lost)),
        metrics({WAN_VERSION, server_engine.Device().device, server_engine.Device().dtype}) {}

  absl::Status OpenJobs();
  absl::Status TakePort();
  absl::Status ListenForScrapes();
  absl::Status ListenForCalls(ServerFacts facts);
  absl::Status LoadModels();
  WireStats WireNow();

  const ServerConfig config;
  Engine& engine;
  Clock& clock;
  Logger& logger;
  ActivityLog activity;
  HealthReporter health;
  DeviceLossListener device_loss;
  Metrics metrics;
  std::unique_ptr<JobService> jobs;
  std::unique_ptr<MetricsServer> metrics_server;
  std::stop_source stopping;
  MemoryTrimmer trimmer{clock, &MemoryTrimmer::TrimHeap};
  Admission admission{AdmissionLimits(), [this](int64_t bytes) { trimmer.Freed(bytes); }};
  std::vector<std::unique_ptr<grpc::Service>> services;
  // Goes before the services: what it runs last may hold the last of a stream.
  WorkerPool pool{kWorkers};
  std::unique_ptr<grpc::Server> grpc_server;
  // gRPC's door for connections, and who brings them there.
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> door;
  std::unique_ptr<ConnectionAcceptor> acceptor;
  HostPort grpc_address;
  std::once_flag stopped;
};

absl::Status Server::Parts::OpenJobs() {
  JobServiceOptions options;
  options.data_dir = config.data_dir;
  options.queue_capacity = config.queue_capacity;
  options.max_attempts = config.max_attempts;
  options.caller_grace = absl::Seconds(config.caller_grace);
  options.warm_up_on_load = config.warm_up;
  options.warm_up_shapes = config.warm_up_shapes;
  options.server_version = WAN_VERSION;
  options.sinks = {metrics.StageSinks(), activity.StageSinks()};
  options.listeners = {&metrics, &activity, &health, &device_loss};
  absl::StatusOr<std::unique_ptr<JobService>> opened = JobService::Open(options, engine, clock);
  if (!opened.ok()) return opened.status();
  jobs = *std::move(opened);
  metrics.SetSource([this] {
    return MetricsSnapshot{jobs->Stats(), jobs->models().List(), engine.Monitor().Sample(),
                           WireNow()};
  });
  return absl::OkStatus();
}

absl::Status Server::Parts::TakePort() {
  absl::StatusOr<std::unique_ptr<ConnectionAcceptor>> taken =
      ConnectionAcceptor::Listen(config.listen, ConnectionLimitsOf(config));
  if (!taken.ok()) return taken.status();
  acceptor = *std::move(taken);
  grpc_address = {config.listen.host, acceptor->port()};
  return absl::OkStatus();
}

WireStats Server::Parts::WireNow() {
  const ConnectionStats connections = acceptor->Stats();
  const DescriptorUse descriptors = DescriptorsNow();
  WireStats wire;
  wire.connections = connections.open;
  wire.connections_limit = connections.limit;
  wire.refused_connections = {{"address", connections.refused_address},
                              {"total", connections.refused_total},
                              {"descriptors", connections.refused_descriptors}};
  wire.descriptors = descriptors.open;
  wire.descriptors_limit = descriptors.limit;
  const AdmissionStats calls = admission.Stats();
  wire.request_bytes = calls.request_bytes;
  wire.request_bytes_limit = admission.limits().request_bytes;
  wire.streams = calls.streams;
  wire.streams_limit = admission.limits().streams;
  wire.downloads = calls.downloads;
  wire.downloads_limit = admission.limits().downloads;
  wire.refused_calls = {{"requests", calls.refused_requests},
                        {"streams", calls.refused_streams},
                        {"downloads", calls.refused_downloads}};
  return wire;
}

absl::Status Server::Parts::ListenForScrapes() {
  absl::StatusOr<std::unique_ptr<MetricsServer>> started =
      MetricsServer::Start(config.metrics_listen, metrics.collectable());
  if (!started.ok()) return started.status();
  metrics_server = *std::move(started);
  return absl::OkStatus();
}

absl::Status Server::Parts::ListenForCalls(ServerFacts facts) {
  const absl::Duration heartbeat = absl::Seconds(config.heartbeat_interval);
  services.push_back(MakeVideoGenerationService(*jobs, clock, heartbeat, admission, pool));
  services.push_back(MakeModelManagementService(jobs->models(), clock, heartbeat, admission, pool,
                                                stopping.get_token()));
  services.push_back(MakeTelemetryService(std::move(facts), engine, clock, heartbeat, *jobs,
                                          admission, pool, stopping.get_token()));
  for (auto& service : MakeReflectionServices()) services.push_back(std::move(service));

  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxRequestBytes);
  // A compressed request is unpacked before anything can limit it: 60 MiB become 60 GB.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  grpc::ResourceQuota quota("wanserve");
  builder.SetResourceQuota(quota.Resize(kGrpcBytes));
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kCallsPerConnection);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMillis);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kShortestPingMillis);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  door = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      grpc::InsecureServerCredentials());
  for (const auto& service : services) builder.RegisterService(service.get());
  grpc_server = builder.BuildAndStart();
  if (grpc_server == nullptr) return absl::InternalError("gRPC's server could not be started");
  health.Start([service = grpc_server->GetHealthCheckService()](bool serving) {
    for (const char* const name : kServiceNames) service->SetServingStatus(name, serving);
  });
  acceptor->Start(
      [this](int socket) {
        grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
        connection.fd = socket;
        door->HandleNewConnection(&connection);
      },
      [this](bool accepting) {
        logger.Log(accepting ? LogLevel::kInfo : LogLevel::kError,
                   accepting ? "connections are accepted again"
                             : "no connection is accepted: there are too many, or no descriptors",
                   {{"connections", acceptor->Stats().open}});
        health.SetAccepting(accepting);
      });
  return absl::OkStatus();
}

absl::Status Server::Parts::LoadModels() {
  ModelRegistry& models = jobs->models();
  // All are known before the first begins, so that a request for the last is told to wait.
  for (const ModelSpec& model : config.models) {
    if (absl::Status status = models.Add(model); !status.ok()) return status;
  }
  for (const ModelSpec& model : config.models) {
    // The listeners hear how it ends.
    models.Load(model, [](const absl::StatusOr<wan::v1::Model>&) {});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerConfig& config, Engine& engine,
                                                      Clock& clock, Logger& logger,
                                                      std::map<std::string, std::string> libraries,
                                                      std::function<void()> on_device_lost) {
  auto parts = std::make_unique<Parts>(config, engine, clock, logger, std::move(on_device_lost));
  Parts& started = *parts;
  // From here on an early return stops what has been started.
  std::unique_ptr<Server> server(new Server(std::move(parts)));
  if (absl::Status status = started.OpenJobs(); !status.ok()) return status;
  if (absl::Status status = started.TakePort(); !status.ok()) return status;
  if (absl::Status status = started.ListenForScrapes(); !status.ok()) return status;
  if (absl::Status status = started.ListenForCalls(FactsOf(clock, std::move(libraries)));
      !status.ok()) {
    return status;
  }
  if (absl::Status status = started.LoadModels(); !status.ok()) return status;
  return server;
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() { Stop(); }

HostPort Server::grpc_address() const { return parts_->grpc_address; }
HostPort Server::metrics_address() const { return parts_->metrics_server->address(); }

void Server::Stop() {
  std::call_once(parts_->stopped, [this] {
    Parts& parts = *parts_;
    parts.health.Stop();
    if (parts.jobs != nullptr) {
      parts.jobs->Stop(StopModeOf(parts.config.shutdown_mode),
                       absl::Seconds(parts.config.shutdown_grace_seconds));
    }
    parts.stopping.request_stop();
    // gRPC forgets to close what is handed over after its shutdown.
    if (parts.acceptor != nullptr) parts.acceptor->Stop();
    if (parts.grpc_server != nullptr) {
      parts.grpc_server->Shutdown(std::chrono::system_clock::now() + kLastCalls);
    }
    parts.metrics.SetSource(nullptr);
  });
}

}  // namespace wan::server
