#include "server/server.h"

#include <grpcpp/impl/service_type.h>
#include <grpcpp/version_info.h>

#include <atomic>
#include <mutex>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/auth/method_rules.h"
#include "server/calls/admission.h"
#include "server/calls/all_devices.h"
#include "server/calls/connection_acceptor.h"
#include "server/calls/memory_trimmer.h"
#include "server/calls/server_description.h"
#include "server/calls/worker_pool.h"
#include "server/gate.h"
#include "server/http/http_server.h"
#include "server/http/video_api.h"
#include "server/jobs/deadline_timer.h"
#include "server/jobs/job_service.h"
#include "server/logging/activity_log.h"
#include "server/metrics/gpu_meter.h"
#include "server/metrics/metrics.h"
#include "server/metrics/metrics_server.h"
#include "server/objects/object_store.h"
#include "server/open_objects.h"
#include "server/outbound_reports.h"
#include "server/part_options.h"
#include "server/process/reloader.h"
#include "server/rpc/grpc_port.h"
#include "server/rpc/health_reporter.h"
#include "server/rpc/health_service.h"
#include "server/rpc/reflection_service.h"
#include "server/rpc/services.h"
#include "server/wire_now.h"

namespace wan::server {
namespace {

// The name under which health services know the liveness check. If the liveness check fails,
// restart the process; other checks tell whether the server takes jobs.
constexpr char kLiveness[] = "liveness";
constexpr char kStuck[] =
    "a running job makes no progress, and only a restart helps; the log says more";
// How often the log repeats that the server does not authenticate its callers.
constexpr absl::Duration kWarnAgain = absl::Hours(1);

constexpr const char* kServiceNames[] = {"", "wan.v1.VideoGeneration", "wan.v1.ModelManagement",
                                         "wan.v1.Telemetry", "wan.v1.Administration"};

// Tells the code that started the server that the last device is lost.
class DeviceLossListener final : public StateListener {
 public:
  explicit DeviceLossListener(std::function<void()> tell) : tell_(std::move(tell)) {}
  void OnDeviceLost(DeviceLoss, const absl::Status&) override { std::call_once(told_, tell_); }

 private:
  const std::function<void()> tell_;
  std::once_flag told_;
};

}  // namespace

// The members are in the order of their construction, and are destroyed in the reverse order.
struct Server::State {
  State(const ServerConfig& server_config, const std::vector<Engine*>& server_engines,
        Clock& server_clock, Logger& server_logger, std::function<void()> on_device_lost)
      : config(server_config),
        engines(server_engines),
        devices(server_engines),
        clock(server_clock),
        logger(server_logger),
        activity(server_logger),
        health(ModelNamesOf(server_config)),
        device_loss(std::move(on_device_lost)),
        metrics({WAN_VERSION, WAN_REVISION, absl::StrJoin(DeviceNamesOf(server_config), " "),
                 server_engines.front()->Device().dtype, server_engines.front()->Device().libraries,
                 GRPC_CPP_VERSION_STRING},
                server_clock),
        reloader(server_config, {server_logger, [this](const ServerConfig& changed) {
                                   jobs->SetLimits(changed.retention, changed.disk_reserve);
                                 }}) {}

  absl::Status OpenGate();
  absl::Status OpenJobs();
  absl::Status TakePorts();
  absl::Status TakeHttpPort();
  void OpenHealth();
  void Describe(std::map<std::string, std::string> libraries);
  absl::Status CheckAlive();
  // Returns why a service is NOT_SERVING; `service` is one of kServiceNames, the health name of a
  // model, or kLiveness. Returns nullopt for other names.
  std::optional<NotServingReasons> ReasonsOf(const std::string& service);
  absl::Status ListenForScrapes();
  absl::Status ListenForCalls();
  void ServeHttp();
  // Logs that a port has begun or ceased to accept connections; `kind` is "HTTP " or empty.
  void LogAccepting(bool accepting, const char* kind, const ConnectionStats& connections);
  // Makes the services of the address for administrators (`admin`) or of the other address. If the
  // server has an address for administrators, only that address serves ModelManagement and
  // Administration.
  std::vector<grpc::Service*> MakeServices(bool admin);
  absl::Status StartPort(GrpcPort& port, bool admin);
  void WarnOfInsecurity();
  std::map<std::string, int64_t> DroppedLines() const;
  absl::Status LoadModels();

  const ServerConfig config;
  const std::vector<Engine*> engines;  // the index is the number of the device group
  const AllDevices devices;
  Clock& clock;
  GpuMeter gpu_meter{devices.StartReader(), clock};
  Logger& logger;
  ActivityLog activity;
  HealthReporter health;
  DeviceLossListener device_loss;
  Metrics metrics;
  Reloader reloader;
  MemoryTrimmer trimmer{clock, &MemoryTrimmer::TrimHeap};
  std::unique_ptr<Gate> gate;
  std::atomic<bool> alive = true;  // the latest result of CheckAlive
  HealthStatuses health_statuses;  // declared before `jobs`, because models notify it even during
                                   // the destruction of the jobs
  std::unique_ptr<OutboundReports> reports;
  std::unique_ptr<ObjectStore> objects;  // null: there is no object store
  std::unique_ptr<JobService> jobs;
  std::unique_ptr<ServerDescription> description;
  std::unique_ptr<MetricsServer> metrics_server;
  std::stop_source stopping;
  Admission admission{AdmissionLimits(), [this](int64_t bytes) { trimmer.Freed(bytes); }};
  std::vector<std::unique_ptr<grpc::Service>> services;
  std::unique_ptr<VideoApi> video_api;
  std::unique_ptr<HttpServer> http;  // null: the OpenAI video API is off
  // Destroyed before the services, because the pool's last tasks may hold the last reference to a
  // stream.
  WorkerPool pool{WorkLimits::Standard()};
  std::unique_ptr<GrpcPort> port;
  std::unique_ptr<GrpcPort> admin_port;  // null: `port` has the administrators' services
  DeadlineTimer hourly{clock.Steady()};
  std::once_flag stopped;
};

absl::Status Server::State::OpenJobs() {
  JobServiceOptions options = JobOptionsOf(config, gate->authenticates());
  options.sinks = {metrics.StageSinks(), activity.StageSinks()};
  options.quotas = &gate->quotas();
  options.listeners = {&metrics, &activity, &health, &device_loss, &trimmer};
  absl::StatusOr<std::unique_ptr<OutboundReports>> outbound =
      OutboundReports::Open(config, clock, logger, {&metrics, &activity});
  if (!outbound.ok()) return outbound.status();
  reports = *std::move(outbound);
  reports->ListenTo(options);
  absl::StatusOr<std::unique_ptr<ObjectStore>> store = OpenObjects(config, clock, logger, metrics);
  if (!store.ok()) return store.status();
  objects = *std::move(store);
  options.objects = objects.get();
  absl::StatusOr<std::unique_ptr<JobService>> opened = JobService::Open(options, engines, clock);
  if (!opened.ok()) return opened.status();
  jobs = *std::move(opened);
  reports->Start(*jobs);
  metrics.SetSource([this] {
    return MetricsSnapshot{jobs->Stats(),      jobs->models().List(),
                           devices.Sample(),   WireNow(*port, admin_port.get(), admission),
                           jobs->StorageNow(), gpu_meter.Read(),
                           DroppedLines()};
  });
  return absl::OkStatus();
}

std::map<std::string, int64_t> Server::State::DroppedLines() const {
  std::map<std::string, int64_t> dropped{{"server", logger.dropped()}};
  if (!config.audit_log.empty()) dropped["audit"] = gate->audit().dropped();
  return dropped;
}

absl::Status Server::State::OpenGate() {
  absl::StatusOr<std::unique_ptr<Gate>> opened = Gate::Open(
      config, clock, logger,
      {[this](std::string_view job, std::string_view field) { return jobs->OwnerOf(job, field); },
       [this] { jobs->QuotasChanged(); },
       {clock, [this](std::string_view path, const absl::Status& status,
                      absl::Duration taken) { metrics.OnCall(path, status, taken); }},
       [this](const absl::Status& problem) { activity.OnProblem(problem); }});
  if (!opened.ok()) return opened.status();
  gate = *std::move(opened);
  gate->AddTo(reloader);
  return absl::OkStatus();
}

absl::Status Server::State::TakePorts() {
  const ConnectionLimits limits = ConnectionLimitsOf(config);
  const RelayOptions relay{clock, gate->tls(), gate->callers()};
  absl::StatusOr<std::unique_ptr<GrpcPort>> taken =
      GrpcPort::Listen("listen", config.listen, limits, relay);
  if (!taken.ok()) return taken.status();
  port = *std::move(taken);
  if (!config.admin_listen.has_value()) return absl::OkStatus();
  taken = GrpcPort::Listen("admin_listen", *config.admin_listen, limits, relay);
  if (!taken.ok()) return taken.status();
  admin_port = *std::move(taken);
  return absl::OkStatus();
}

absl::Status Server::State::TakeHttpPort() {
  if (!config.http_listen.has_value()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<HttpServer>> taken = HttpServer::Listen(
      "http_listen", *config.http_listen, ConnectionLimitsOf(config), {}, gate->tls());
  if (!taken.ok() && !config.http_listen_chosen) {
    logger.Log(LogLevel::kWarning,
               "the OpenAI video API and its page are off, because their default address is taken; "
               "choose one with http_listen",
               {{"http", ToString(*config.http_listen)}});
    return absl::OkStatus();
  }
  if (!taken.ok()) return taken.status();
  http = *std::move(taken);
  return absl::OkStatus();
}

void Server::State::ServeHttp() {
  if (http == nullptr) return;
  const VideoApiOptions options{
      {gate->authenticates(), IsLoopback(http->address()), config.http_page, config.http_origins},
      clock.Now(),
      clock,
      absl::Seconds(config.heartbeat_interval),
      config.health_access != ServiceAccess::kOff,
      [this](std::string_view route, int code, absl::Duration taken) {
        metrics.OnHttpAnswer(route, code, taken);
      }};
  video_api =
      std::make_unique<VideoApi>(*jobs, *description, gate->keeper(), admission, pool, options);
  http->Start(video_api->Callbacks(),
              [this](bool accepting) { LogAccepting(accepting, "HTTP ", http->Stats()); });
}

void Server::State::LogAccepting(bool accepting, const char* kind,
                                 const ConnectionStats& connections) {
  logger.Log(accepting ? LogLevel::kInfo : LogLevel::kError,
             accepting ? absl::StrCat(kind, "connections are accepted again")
                       : absl::StrCat("no ", kind,
                                      "connection is accepted: there are too many, or "
                                      "no descriptors"),
             {{"connections", connections.open}});
}

absl::Status Server::State::ListenForScrapes() {
  for (const MethodRule& rule : MethodRules()) {
    const bool grpc = rule.path.starts_with('/');
    if (grpc || http != nullptr) metrics.AddMethod(rule.path);
  }
  absl::StatusOr<std::unique_ptr<MetricsServer>> started = MetricsServer::Start(
      config.metrics_listen, metrics.scrapes(), {}, gate->tls(),
      {[this] {
         // Leave out the job's name, because anybody may ask here.
         return CheckAlive().ok() ? absl::OkStatus() : absl::UnavailableError(kStuck);
       },
       [this] {
         const NotServingReasons reasons = health.Reasons();
         return reasons.empty() ? absl::OkStatus()
                                : absl::UnavailableError("not serving: " + OneLine(reasons));
       }});
  if (!started.ok()) return started.status();
  metrics_server = *std::move(started);
  return absl::OkStatus();
}

std::vector<grpc::Service*> Server::State::MakeServices(bool admin) {
  std::vector<grpc::Service*> made;
  const auto add = [&](std::unique_ptr<grpc::Service> service) {
    made.push_back(service.get());
    services.push_back(std::move(service));
  };
  const ServiceShared shared{clock,
                             gate->keeper(),
                             admission,
                             pool,
                             absl::Seconds(config.heartbeat_interval),
                             stopping.get_token()};
  if (!admin) add(MakeVideoGenerationService(shared, *jobs));
  if (admin || admin_port == nullptr) {
    add(MakeModelManagementService(shared, jobs->models(), jobs->model_operations()));
    add(MakeAdministrationService(
        shared, [this] { return StopSettingsOf(reloader.current()); }, *jobs));
  }
  add(MakeTelemetryService(shared, *description));
  if (config.health_access != ServiceAccess::kOff) add(MakeHealthService(shared, health_statuses));
  if (config.reflection_access != ServiceAccess::kOff) {
    for (auto& service : MakeReflectionServices(shared)) add(std::move(service));
  }
  return made;
}

absl::Status Server::State::StartPort(GrpcPort& started, bool admin) {
  const auto accepting = [this, &started, admin](bool accepts) {
    LogAccepting(accepts, "", started.Stats());
    // Health depends on the port for callers, not on the administrators' port.
    if (!admin) health.SetAccepting(accepts);
  };
  const auto on_refused = [this](const RefusedCaller& caller) {
    logger.Log(LogLevel::kWarning, "a connection was closed, because its caller misused HTTP/2",
               {{"peer", caller.peer},
                {"rule", NameOf(caller.violation.rule)},
                {"problem", caller.violation.text}});
  };
  return started.Start(MakeServices(admin), {accepting, on_refused});
}

absl::Status Server::State::CheckAlive() {
  absl::Status progress = jobs->CheckProgress();
  if (alive.exchange(progress.ok()) != progress.ok()) {
    if (progress.ok()) {
      logger.Log(LogLevel::kInfo, "the job makes progress again");
    } else {
      activity.OnProblem(progress);
    }
  }
  return progress;
}

void Server::State::OpenHealth() {
  health_statuses.AskAbout([this](const std::string& service) { return ReasonsOf(service); });
  // Ask again about all services: the table may have forgotten the changed model.
  jobs->models().AddWatcher([this](const std::string&) { health_statuses.Changed(); });
  health.Start(
      [this, told = std::optional<std::string>()](const NotServingReasons& reasons) mutable {
        for (const char* const name : kServiceNames) health_statuses.Set(name, reasons);
        // Compare the codes, because the numbers in a message may change every second; the log has
        // each reason once.
        std::string codes = CodesOf(reasons);
        if (told != codes) activity.OnHealth(reasons);
        told = std::move(codes);
      });
}

void Server::State::Describe(std::map<std::string, std::string> libraries) {
  description = std::make_unique<ServerDescription>(
      FactsOf(config, *engines.front(), clock, std::move(libraries)), devices,
      [this] { return health.Reasons(); }, *jobs);
}

std::optional<NotServingReasons> Server::State::ReasonsOf(const std::string& service) {
  if (service == kLiveness) {
    // Leave out the job's name, because anybody may ask here.
    return CheckAlive().ok() ? NotServingReasons() : NotServingReasons{{"JOB_STUCK", kStuck}};
  }
  const std::optional<std::string_view> model = ModelOfHealthName(service);
  if (!model.has_value()) return std::nullopt;
  const std::optional<wan::v1::ModelState> state = jobs->models().StateOf(*model);
  if (!state.has_value()) return std::nullopt;
  return health.ReasonsOfModel(*model, *state);
}

absl::Status Server::State::ListenForCalls() {
  if (absl::Status status = StartPort(*port, /*admin=*/false); !status.ok()) return status;
  if (admin_port == nullptr) return absl::OkStatus();
  return StartPort(*admin_port, /*admin=*/true);
}

void Server::State::WarnOfInsecurity() {
  const bool reached =
      !IsLoopback(config.listen) || (http != nullptr && !IsLoopback(http->address()));
  if (!config.auth_tokens.empty() && gate->tls() == nullptr && reached) {
    logger.Log(
        LogLevel::kWarning,
        "tokens are sent in plain text: set tls_cert and tls_key unless the network encrypts");
  }
  if (!config.insecure || gate->authenticates()) return;
  const auto warn = [this] {
    logger.Log(LogLevel::kWarning,
               "insecure: everybody who reaches the port may do everything; set auth_tokens or "
               "tls_client_ca",
               {{"grpc", ToString(port->address())}});
  };
  warn();
  hourly.Start([this, warn](const std::string& key) {
    warn();
    hourly.Add(key, clock.Steady().Now() + kWarnAgain);
  });
  hourly.Add("insecure", clock.Steady().Now() + kWarnAgain);
}

absl::Status Server::State::LoadModels() {
  // Add all models before the first load begins, so that requests for the last one get
  // MODEL_LOADING.
  const auto unused = LoraFoldersOf(config).FindUnused(config.models);
  // Fail now, because a load would fail for the same reason and no caller would hear of it.
  if (!unused.ok()) return unused.status();
  for (const LoraFolders::UnusedSchedule& one : *unused) {
    // Only warn, because the LoRA's file may be added to a folder before the next load.
    logger.Log(LogLevel::kWarning, "lora_schedules has a name that no LoRA has",
               {{"name", absl::StrCat(one.model, one.model.empty() ? "" : "/", one.name)},
                {"loras", one.known.empty() ? "none" : absl::StrJoin(one.known, ", ")}});
  }
  for (const ModelSpec& model : config.models) {
    if (absl::Status status = jobs->models().Add(model); !status.ok()) return status;
  }
  for (const ModelSpec& model : config.models) {
    // Ignore the result here: the state listeners are told how the load ends.
    jobs->model_operations().Load(model, [](const absl::StatusOr<wan::v1::Model>&) {});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerConfig& config,
                                                      const std::vector<Engine*>& engines,
                                                      Clock& clock, Logger& logger,
                                                      std::map<std::string, std::string> libraries,
                                                      std::function<void()> on_device_lost) {
  auto state = std::make_unique<State>(config, engines, clock, logger, std::move(on_device_lost));
  State& started = *state;
  // From here on, the destructor stops what has been started if this function returns early.
  std::unique_ptr<Server> server(new Server(std::move(state)));
  if (absl::Status status = started.OpenGate(); !status.ok()) return status;
  if (absl::Status status = started.OpenJobs(); !status.ok()) return status;
  if (absl::Status status = started.TakePorts(); !status.ok()) return status;
  if (absl::Status status = started.TakeHttpPort(); !status.ok()) return status;
  // Health is known before the first caller can ask for it.
  started.OpenHealth();
  if (absl::Status status = started.ListenForScrapes(); !status.ok()) return status;
  started.Describe(std::move(libraries));
  if (absl::Status status = started.ListenForCalls(); !status.ok()) return status;
  started.ServeHttp();
  if (absl::Status status = started.LoadModels(); !status.ok()) return status;
  started.WarnOfInsecurity();
  return server;
}

Server::Server(std::unique_ptr<State> state) : state_(std::move(state)) {}

Server::~Server() { Stop(); }

HostPort Server::grpc_address() const { return state_->port->address(); }
std::optional<HostPort> Server::admin_address() const {
  if (state_->admin_port == nullptr) return std::nullopt;
  return state_->admin_port->address();
}
std::optional<HostPort> Server::http_address() const {
  if (state_->http == nullptr) return std::nullopt;
  return state_->http->address();
}
HostPort Server::metrics_address() const { return state_->metrics_server->address(); }

absl::Status Server::CheckAlive() { return state_->CheckAlive(); }

void Server::Reload(const absl::StatusOr<ServerConfig>& next) { state_->reloader.Reload(next); }

void Server::Stop() {
  std::call_once(state_->stopped, [this] {
    State& state = *state_;
    state.health.Stop();
    if (state.jobs != nullptr) {
      const StopSettings stop = StopSettingsOf(state.reloader.current());
      state.jobs->Stop(stop.mode, stop.grace);
    }
    if (state.reports != nullptr) state.reports->StopWebhooks();
    state.stopping.request_stop();
    if (state.objects != nullptr) state.objects->StopReads();
    state.hourly.Stop();
    state.pool.Stop();
    if (state.port != nullptr) state.port->Stop();
    if (state.admin_port != nullptr) state.admin_port->Stop();
    if (state.http != nullptr) state.http->Stop();
    if (state.reports != nullptr) state.reports->StopTraces();
    state.metrics.SetSource(nullptr);
    if (state.gate != nullptr) state.gate->audit().Flush();
  });
}

}  // namespace wan::server
