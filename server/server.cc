#include "server/server.h"

#include <grpcpp/impl/service_type.h>
#include <grpcpp/version_info.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "server/auth/authenticator.h"
#include "server/auth/tls_files.h"
#include "server/calls/admission.h"
#include "server/calls/connection_acceptor.h"
#include "server/calls/gatekeeper.h"
#include "server/calls/memory_trimmer.h"
#include "server/calls/worker_pool.h"
#include "server/http/http_server.h"
#include "server/http/video_api.h"
#include "server/jobs/deadline_timer.h"
#include "server/jobs/job_service.h"
#include "server/logging/activity_log.h"
#include "server/logging/audit_log.h"
#include "server/metrics/gpu_meter.h"
#include "server/metrics/metrics.h"
#include "server/metrics/metrics_server.h"
#include "server/part_options.h"
#include "server/process/reloader.h"
#include "server/rpc/all_devices.h"
#include "server/rpc/grpc_port.h"
#include "server/rpc/health_reporter.h"
#include "server/rpc/health_service.h"
#include "server/rpc/reflection_service.h"
#include "server/rpc/services.h"
#include "server/tracing/collector.h"
#include "server/tracing/job_tracer.h"
#include "server/tracing/span_exporter.h"
#include "server/tracing/span_ids.h"
#include "server/webhooks/webhook_delivery.h"
#include "server/webhooks/webhook_message.h"
#include "server/webhooks/webhook_rules.h"
#include "server/webhooks/webhook_transport.h"
#include "server/wire_now.h"

namespace wan::server {
namespace {

// The health of the process, beside that of the services: whoever starts it again asks this.
constexpr char kLiveness[] = "liveness";
constexpr char kStuck[] =
    "a running job makes no progress, and only a restart helps; the log says more";
// How often the log says that the server serves everybody.
constexpr absl::Duration kWarnAgain = absl::Hours(1);

constexpr const char* kServiceNames[] = {"", "wan.v1.VideoGeneration", "wan.v1.ModelManagement",
                                         "wan.v1.Telemetry", "wan.v1.Administration"};

// Tells whoever started the server.
class DeviceLossListener final : public StateListener {
 public:
  explicit DeviceLossListener(std::function<void()> tell) : tell_(std::move(tell)) {}
  void OnDeviceLost(DeviceLoss, const absl::Status&) override { std::call_once(told_, tell_); }

 private:
  const std::function<void()> tell_;
  std::once_flag told_;
};

}  // namespace

// In the order of their making; they go in the reverse one.
struct Server::Parts {
  Parts(const ServerConfig& server_config, const std::vector<Engine*>& server_engines,
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
  absl::Status OpenWebhooks();
  absl::Status OpenTracing();
  absl::Status OpenJobs();
  absl::Status TakePorts();
  absl::Status TakeHttpPort();
  void OpenHealth();
  absl::Status CheckAlive();
  // Why a service of kServiceNames, of a model or kLiveness is NOT_SERVING; nothing if it is none
  // of these.
  std::optional<NotServingReasons> ReasonsOf(const std::string& service);
  void AddReloadedFiles();
  absl::Status ListenForScrapes();
  absl::Status ListenForCalls(const ServerFacts& facts);
  void ServeHttp();
  // Those of an address. ModelManagement and Administration are on the address for administrators,
  // if there is one.
  std::vector<grpc::Service*> MakeServices(const ServerFacts& facts, bool admin);
  absl::Status StartPort(GrpcPort& port, const ServerFacts& facts, bool admin);
  void WarnOfInsecurity();
  std::map<std::string, int64_t> DroppedLines() const;
  absl::Status LoadModels();

  const ServerConfig config;
  const std::vector<Engine*> engines;  // by group
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
  std::unique_ptr<Quotas> quotas = std::make_unique<Quotas>();
  std::atomic<bool> alive = true;  // what CheckAlive said last
  HealthStatuses health_statuses;  // told by the models, also while the jobs go
  std::unique_ptr<CurlTransport> webhook_transport;
  std::unique_ptr<WebhookDelivery> webhooks;  // null: there are none
  std::unique_ptr<SpanExporter> spans;        // null: no traces are exported
  std::unique_ptr<JobTracer> tracer;
  std::unique_ptr<JobService> jobs;
  std::unique_ptr<TlsFiles> tls;  // null: plain text
  std::unique_ptr<MetricsServer> metrics_server;
  std::stop_source stopping;
  Admission admission{AdmissionLimits(), [this](int64_t bytes) { trimmer.Freed(bytes); }};
  std::unique_ptr<Authenticator> authenticator;
  CallRates call_rates{clock};
  CallerDirectory callers;
  std::unique_ptr<AuditLog> audit;
  std::unique_ptr<Gatekeeper> gatekeeper;
  std::vector<std::unique_ptr<grpc::Service>> services;
  std::unique_ptr<VideoApi> video_api;
  std::unique_ptr<HttpServer> http;  // null: off
  // Goes before the services: what it runs last may hold the last of a stream.
  WorkerPool pool{WorkLimits::Standard()};
  std::unique_ptr<GrpcPort> port;
  std::unique_ptr<GrpcPort> admin_port;  // null: `port` has the administrators' services
  DeadlineTimer hourly{clock.Steady()};
  std::once_flag stopped;
};

absl::Status Server::Parts::OpenWebhooks() {
  if (config.webhook_hosts.empty()) return absl::OkStatus();
  WebhookOptions options;
  options.rules = WebhookRulesOf(config);
  for (const std::string& host : config.webhook_hosts) {
    if (std::string problem = HostEntryProblem(host); !problem.empty()) {
      return absl::InvalidArgumentError("webhook_hosts " + problem);
    }
  }
  absl::StatusOr<std::string> secret = ReadWebhookSecret(config.webhook_secret);
  if (!secret.ok()) return secret.status();
  options.secret = *std::move(secret);
  webhook_transport =
      std::make_unique<CurlTransport>(options.rules, TransportLimits(), config.webhook_ca);
  webhooks = std::make_unique<WebhookDelivery>(std::move(options), *webhook_transport, clock,
                                               std::vector<StateListener*>{&metrics, &activity});
  return absl::OkStatus();
}

absl::Status Server::Parts::OpenTracing() {
  if (config.otlp_endpoint.empty()) return absl::OkStatus();
  const absl::StatusOr<std::string> url = TracesUrl(config.otlp_endpoint);
  if (!url.ok()) return url.status();
  PostFields headers;
  if (!config.otlp_headers.empty()) {
    absl::StatusOr<PostFields> read = ReadCollectorHeaders(config.otlp_headers);
    if (!read.ok()) return read.status();
    headers = *std::move(read);
  }
  spans = std::make_unique<SpanExporter>(
      TraceOptionsOf(config),
      [collector = Collector(*url, std::move(headers), config.otlp_ca)](const std::string& request,
                                                                        std::stop_token stop) {
        return collector.Post(request, std::move(stop));
      },
      clock, std::vector<StateListener*>{&metrics, &activity});
  tracer = std::make_unique<JobTracer>(*spans);
  logger.Log(LogLevel::kInfo, "traces are exported", {{"url", *url}});
  return absl::OkStatus();
}

absl::Status Server::Parts::OpenJobs() {
  JobServiceOptions options = JobOptionsOf(config, authenticator->enabled());
  options.sinks = {metrics.StageSinks(), activity.StageSinks()};
  options.quotas = quotas.get();
  options.listeners = {&metrics, &activity, &health, &device_loss, &trimmer};
  if (webhooks != nullptr) {
    options.listeners.push_back(webhooks.get());
    options.webhook_problem = [rules = WebhookRulesOf(config)](auto url) {
      return WebhookUrlProblem(rules, url);
    };
  }
  if (tracer != nullptr) {
    options.sinks.push_back(tracer->StageSinks());
    options.listeners.push_back(tracer.get());
    options.new_trace = [ratio = config.otlp_sampling_ratio] { return NewTrace(ratio); };
  }
  absl::StatusOr<std::unique_ptr<JobService>> opened = JobService::Open(options, engines, clock);
  if (!opened.ok()) return opened.status();
  jobs = *std::move(opened);
  if (webhooks != nullptr) webhooks->Start(jobs->webhooks());
  metrics.SetSource([this] {
    return MetricsSnapshot{jobs->Stats(),      jobs->models().List(),
                           devices.Sample(),   WireNow(*port, admin_port.get(), admission),
                           jobs->StorageNow(), gpu_meter.Read(),
                           DroppedLines()};
  });
  return absl::OkStatus();
}

std::map<std::string, int64_t> Server::Parts::DroppedLines() const {
  std::map<std::string, int64_t> dropped{{"server", logger.dropped()}};
  if (!config.audit_log.empty()) dropped["audit"] = audit->dropped();
  return dropped;
}

absl::Status Server::Parts::OpenGate() {
  const auto tell = [this](const absl::Status& problem) { activity.OnProblem(problem); };
  if (!config.tls_cert.empty()) {
    absl::StatusOr<std::unique_ptr<TlsFiles>> files = TlsFiles::Open(
        {config.tls_cert, config.tls_key, config.tls_client_ca}, clock, tell,
        [this](const TlsMaterial& material) {
          logger.Log(LogLevel::kInfo, "certificate",
                     {{"expires", absl::FormatTime(material.expiry, absl::UTCTimeZone())}});
        });
    if (!files.ok()) return files.status();
    tls = *std::move(files);
  }
  absl::StatusOr<std::unique_ptr<Authenticator>> opened = Authenticator::Open(
      {config.auth_tokens, !config.tls_client_ca.empty(), CertificateRoleOf(config), tell});
  if (!opened.ok()) return opened.status();
  authenticator = *std::move(opened);
  if (!config.quotas.empty()) {
    absl::StatusOr<std::unique_ptr<Quotas>> read =
        Quotas::Open(config.quotas, {[this] { jobs->QuotasChanged(); }, tell});
    if (!read.ok()) return read.status();
    quotas = *std::move(read);
  }
  if (config.audit_log.empty()) {
    audit = std::make_unique<AuditLog>(logger, clock);
  } else {
    absl::StatusOr<std::unique_ptr<AuditLog>> file =
        AuditLog::ToFile(config.audit_log, logger, clock);
    if (!file.ok()) return file.status();
    audit = *std::move(file);
  }
  for (const MethodRule& rule : MethodRules()) {
    const bool grpc = rule.path.starts_with('/');
    if (grpc || config.http_listen.has_value()) metrics.AddMethod(rule.path);
  }
  gatekeeper = std::make_unique<Gatekeeper>(
      *authenticator, *audit,
      [this](std::string_view job, std::string_view field) { return jobs->OwnerOf(job, field); },
      PublicServices{config.health_access == ServiceAccess::kPublic,
                     config.reflection_access == ServiceAccess::kPublic},
      *quotas, call_rates, callers,
      CallWatch{clock, [this](std::string_view path, const absl::Status& status,
                              absl::Duration taken) { metrics.OnCall(path, status, taken); }});
  return absl::OkStatus();
}

absl::Status Server::Parts::TakePorts() {
  const ConnectionLimits limits = ConnectionLimitsOf(config);
  const RelayOptions relay{clock, tls.get(), callers};
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

absl::Status Server::Parts::TakeHttpPort() {
  if (!config.http_listen.has_value()) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<HttpServer>> taken = HttpServer::Listen(
      "http_listen", *config.http_listen, ConnectionLimitsOf(config), {}, tls.get());
  if (!taken.ok()) return taken.status();
  http = *std::move(taken);
  return absl::OkStatus();
}

void Server::Parts::ServeHttp() {
  if (http == nullptr) return;
  const VideoApiOptions options{authenticator->enabled(), IsLoopback(http->address()), clock.Now(),
                                clock,
                                [this](std::string_view route, int code, absl::Duration taken) {
                                  metrics.OnHttpAnswer(route, code, taken);
                                }};
  video_api = std::make_unique<VideoApi>(*jobs, *gatekeeper, admission, pool, options);
  http->Start(video_api->Callbacks(), [this](bool accepting) {
    logger.Log(accepting ? LogLevel::kInfo : LogLevel::kError,
               accepting ? "HTTP connections are accepted again"
                         : "no HTTP connection is accepted: there are too many, or no descriptors",
               {{"connections", http->Stats().open}});
  });
}

absl::Status Server::Parts::ListenForScrapes() {
  absl::StatusOr<std::unique_ptr<MetricsServer>> started = MetricsServer::Start(
      config.metrics_listen, metrics.scrapes(), {}, tls.get(),
      {[this] {
         // Without the job's name, because anybody may ask here.
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

std::vector<grpc::Service*> Server::Parts::MakeServices(const ServerFacts& facts, bool admin) {
  std::vector<grpc::Service*> made;
  const auto add = [&](std::unique_ptr<grpc::Service> service) {
    made.push_back(service.get());
    services.push_back(std::move(service));
  };
  const ServiceShared shared{clock,
                             *gatekeeper,
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
  add(MakeTelemetryService(
      shared, facts, devices, [this] { return health.Reasons(); }, *jobs));
  if (config.health_access != ServiceAccess::kOff) add(MakeHealthService(shared, health_statuses));
  if (config.reflection_access != ServiceAccess::kOff) {
    for (auto& service : MakeReflectionServices(shared)) add(std::move(service));
  }
  return made;
}

absl::Status Server::Parts::StartPort(GrpcPort& started, const ServerFacts& facts, bool admin) {
  const auto accepting = [this, &started, admin](bool accepts) {
    logger.Log(accepts ? LogLevel::kInfo : LogLevel::kError,
               accepts ? "connections are accepted again"
                       : "no connection is accepted: there are too many, or no descriptors",
               {{"connections", started.Stats().open}});
    // Who may generate decides about health.
    if (!admin) health.SetAccepting(accepts);
  };
  const auto on_refused = [this](const RefusedCaller& caller) {
    logger.Log(LogLevel::kWarning, "a connection was closed, because its caller misused HTTP/2",
               {{"peer", caller.peer},
                {"rule", NameOf(caller.violation.rule)},
                {"problem", caller.violation.text}});
  };
  return started.Start(MakeServices(facts, admin), {accepting, on_refused});
}

absl::Status Server::Parts::CheckAlive() {
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

void Server::Parts::OpenHealth() {
  health_statuses.AskAbout([this](const std::string& service) { return ReasonsOf(service); });
  // Of a model that is forgotten no state is told.
  jobs->models().AddWatcher([this](const std::string&) { health_statuses.Changed(); });
  health.Start(
      [this, told = std::optional<std::string>()](const NotServingReasons& reasons) mutable {
        for (const char* const name : kServiceNames) health_statuses.Set(name, reasons);
        // The numbers in a message may change every second; the log has each reason once.
        std::string codes = CodesOf(reasons);
        if (told != codes) activity.OnHealth(reasons);
        told = std::move(codes);
      });
}

std::optional<NotServingReasons> Server::Parts::ReasonsOf(const std::string& service) {
  if (service == kLiveness) {
    // Without the job's name, because anybody may ask here.
    return CheckAlive().ok() ? NotServingReasons() : NotServingReasons{{"JOB_STUCK", kStuck}};
  }
  const std::optional<std::string_view> model = ModelOfHealthName(service);
  if (!model.has_value()) return std::nullopt;
  const std::optional<wan::v1::ModelState> state = jobs->models().StateOf(*model);
  if (!state.has_value()) return std::nullopt;
  return health.ReasonsOfModel(*model, *state);
}

void Server::Parts::AddReloadedFiles() {
  if (!config.auth_tokens.empty()) {
    reloader.Add({"auth_tokens", [this] { return authenticator->Reload(); }});
  }
  if (!config.quotas.empty()) reloader.Add({"quotas", [this] { return quotas->Reload(); }});
  if (tls != nullptr) reloader.Add({"tls_cert", [this] { return tls->Reload(); }});
}

absl::Status Server::Parts::ListenForCalls(const ServerFacts& facts) {
  if (absl::Status status = StartPort(*port, facts, /*admin=*/false); !status.ok()) return status;
  if (admin_port == nullptr) return absl::OkStatus();
  return StartPort(*admin_port, facts, /*admin=*/true);
}

void Server::Parts::WarnOfInsecurity() {
  const bool reached =
      !IsLoopback(config.listen) || (http != nullptr && !IsLoopback(http->address()));
  if (!config.auth_tokens.empty() && tls == nullptr && reached) {
    logger.Log(
        LogLevel::kWarning,
        "tokens are sent in plain text: set tls_cert and tls_key unless the network encrypts");
  }
  if (!config.insecure || authenticator->enabled()) return;
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

absl::Status Server::Parts::LoadModels() {
  // All are known before the first begins, so that a request for the last is told to wait.
  for (const ModelSpec& model : config.models) {
    if (absl::Status status = jobs->models().Add(model); !status.ok()) return status;
  }
  for (const ModelSpec& model : config.models) {
    // The listeners hear how it ends.
    jobs->model_operations().Load(model, [](const absl::StatusOr<wan::v1::Model>&) {});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerConfig& config, Engine& engine,
                                                      Clock& clock, Logger& logger,
                                                      std::map<std::string, std::string> libraries,
                                                      std::function<void()> on_device_lost) {
  return Start(config, std::vector<Engine*>{&engine}, clock, logger, std::move(libraries),
               std::move(on_device_lost));
}

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerConfig& config,
                                                      const std::vector<Engine*>& engines,
                                                      Clock& clock, Logger& logger,
                                                      std::map<std::string, std::string> libraries,
                                                      std::function<void()> on_device_lost) {
  auto parts = std::make_unique<Parts>(config, engines, clock, logger, std::move(on_device_lost));
  Parts& started = *parts;
  // From here on an early return stops what has been started.
  std::unique_ptr<Server> server(new Server(std::move(parts)));
  if (absl::Status status = started.OpenGate(); !status.ok()) return status;
  started.AddReloadedFiles();
  if (absl::Status status = started.OpenWebhooks(); !status.ok()) return status;
  if (absl::Status status = started.OpenTracing(); !status.ok()) return status;
  if (absl::Status status = started.OpenJobs(); !status.ok()) return status;
  if (absl::Status status = started.TakePorts(); !status.ok()) return status;
  if (absl::Status status = started.TakeHttpPort(); !status.ok()) return status;
  // Health is known before the first caller can ask.
  started.OpenHealth();
  if (absl::Status status = started.ListenForScrapes(); !status.ok()) return status;
  if (absl::Status status =
          started.ListenForCalls(FactsOf(config, *engines.front(), clock, std::move(libraries)));
      !status.ok()) {
    return status;
  }
  started.ServeHttp();
  if (absl::Status status = started.LoadModels(); !status.ok()) return status;
  started.WarnOfInsecurity();
  return server;
}

Server::Server(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() { Stop(); }

HostPort Server::grpc_address() const { return parts_->port->address(); }
std::optional<HostPort> Server::admin_address() const {
  if (parts_->admin_port == nullptr) return std::nullopt;
  return parts_->admin_port->address();
}
std::optional<HostPort> Server::http_address() const {
  if (parts_->http == nullptr) return std::nullopt;
  return parts_->http->address();
}
HostPort Server::metrics_address() const { return parts_->metrics_server->address(); }

absl::Status Server::CheckAlive() { return parts_->CheckAlive(); }

void Server::Reload(const absl::StatusOr<ServerConfig>& next) { parts_->reloader.Reload(next); }

void Server::Stop() {
  std::call_once(parts_->stopped, [this] {
    Parts& parts = *parts_;
    parts.health.Stop();
    if (parts.jobs != nullptr) {
      const StopSettings stop = StopSettingsOf(parts.reloader.current());
      parts.jobs->Stop(stop.mode, stop.grace);
    }
    if (parts.webhooks != nullptr) parts.webhooks->Stop();
    parts.stopping.request_stop();
    parts.hourly.Stop();
    parts.pool.Stop();
    if (parts.port != nullptr) parts.port->Stop();
    if (parts.admin_port != nullptr) parts.admin_port->Stop();
    if (parts.http != nullptr) parts.http->Stop();
    if (parts.spans != nullptr) parts.spans->Stop();
    parts.metrics.SetSource(nullptr);
    if (parts.audit != nullptr) parts.audit->Flush();
  });
}

}  // namespace wan::server
