#include "server/config/settings.h"

#include <cstdio>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/api/utf8.h"
#include "server/config/engine_settings.h"
#include "server/config/nearest_name.h"
#include "server/config/setting_kinds.h"
#include "server/objects/object_place.h"
#include "server/postgres/postgres_url.h"

namespace wan::server {
namespace {

// Accepts every text: an empty one stands for no file.
absl::Status CheckFile(const std::string& /*file*/) { return absl::OkStatus(); }

absl::Status CheckDataDir(const std::string& folder) {
  return folder.empty() ? absl::InvalidArgumentError("is empty; must name a folder")
                        : absl::OkStatus();
}

absl::Status CheckStore(const std::string& url) {
  return url.empty() ? absl::OkStatus() : CheckPostgresUrl(url);
}

absl::Status CheckObjects(const std::string& place) {
  return place.empty() ? absl::OkStatus() : ParseObjectPlace(place).status();
}

absl::Status SetShapes(const SettingValues& values, ServerConfig& config) {
  std::vector<VideoShape> shapes;
  for (const std::string& value : values) {
    VideoShape shape;
    int used = 0;
    const int fields = std::sscanf(value.c_str(), "%5d%*1[x*]%5d%*1[x*]%5d%n", &shape.width,
                                   &shape.height, &shape.num_frames, &used);
    if (fields != 3 || used != static_cast<int>(value.size()) || shape.width < 1 ||
        shape.height < 1 || shape.num_frames < 1) {
      return MustBe(value, "WIDTHxHEIGHTxFRAMES, for example 1280x704x121");
    }
    shapes.push_back(shape);
  }
  config.warm_up_shapes = std::move(shapes);
  return absl::OkStatus();
}

SettingValues GetShapes(const ServerConfig& config) {
  SettingValues values;
  for (const VideoShape& shape : config.warm_up_shapes) {
    values.push_back(absl::StrCat(shape.width, "x", shape.height, "x", shape.num_frames));
  }
  return values;
}

absl::Status SetOtlpAttributes(const SettingValues& values, ServerConfig& config) {
  std::set<std::string> keys;
  for (const std::string& value : values) {
    const size_t equals = value.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return MustBe(value, "KEY=VALUE, for example service.name=wan-eu");
    }
    if (!keys.insert(value.substr(0, equals)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("names '", value.substr(0, equals), "' twice; give each key one value"));
    }
  }
  config.otlp_attributes = values;
  return absl::OkStatus();
}

std::vector<std::pair<std::string, ServiceAccess>> ServiceAccessWords() {
  return {{"public", ServiceAccess::kPublic},
          {"authenticated", ServiceAccess::kAuthenticated},
          {"off", ServiceAccess::kOff}};
}

// Marks a setting whose new value a running server takes over.
Setting Reloading(Setting setting) {
  setting.reloads = true;
  return setting;
}

// Returns the settings for addresses, authentication, webhooks, traces, and stored files. The
// function is a table: one row for each setting. NOLINTNEXTLINE(readability-function-size)
std::vector<Setting> ServiceSettings() {
  using C = ServerConfig;
  return {
      AddressSetting("listen", "address where gRPC listens; port 0 takes a free port", &C::listen),
      OptionalAddressSetting(
          "admin_listen",
          "address of its own for ModelManagement and Administration, which --listen "
          "does not serve then; unset: none",
          &C::admin_listen),
      HttpListenSetting("http_listen",
                        "address where the OpenAI video API and its page listen; none: they are "
                        "off; unset: 127.0.0.1:8000, if that is free"),
      ChoiceSetting<bool>("http_page", "true|false",
                          "http_listen also has a page for browsers, at /", Setting::Form::kNumber,
                          &C::http_page, {{"true", true}, {"false", false}}),
      TextsSetting("http_origins", "ORIGIN",
                   "other web pages that may use http_listen, such as https://studio.example.com",
                   "an origin", &C::http_origins),
      AddressSetting("metrics_listen",
                     "address where Prometheus' /metrics listens; port 0 takes a free port",
                     &C::metrics_listen),
      TextSetting("tls_cert", "FILE",
                  "PEM file of the server's certificate and its chain; unset: no TLS", &C::tls_cert,
                  CheckFile),
      TextSetting("tls_key", "FILE", "PEM file of the certificate's private key", &C::tls_key,
                  CheckFile),
      TextSetting(
          "tls_client_ca", "FILE",
          "PEM file of the authorities whose client certificates every connection must have",
          &C::tls_client_ca, CheckFile),
      TextSetting("auth_tokens", "FILE", "file of principals; wanserve token writes it",
                  &C::auth_tokens, CheckFile),
      TextSetting("quotas", "FILE",
                  "file of how much each principal may use (docs/operate/quotas.md); unset: "
                  "nothing is limited",
                  &C::quotas, CheckFile),
      ChoiceSetting<ClientCertificateRole>(
          "client_certificate_role", "none|viewer|user|admin",
          "role of client certificates whose subject is not in auth_tokens", Setting::Form::kText,
          &C::client_certificate_role,
          {{"none", ClientCertificateRole::kNone},
           {"viewer", ClientCertificateRole::kViewer},
           {"user", ClientCertificateRole::kUser},
           {"admin", ClientCertificateRole::kAdmin}}),
      SwitchSetting("insecure",
                    "serve everybody who reaches the port, without authentication, on any address",
                    &C::insecure),
      ChoiceSetting<ServiceAccess>("health_access", "public|authenticated|off",
                                   "who may ask for health where callers are authenticated",
                                   Setting::Form::kText, &C::health_access, ServiceAccessWords()),
      ChoiceSetting<ServiceAccess>("reflection_access", "public|authenticated|off",
                                   "who may use reflection where callers are authenticated",
                                   Setting::Form::kText, &C::reflection_access,
                                   ServiceAccessWords()),
      TextSetting("audit_log", "FILE",
                  "file of the audit log; unset: its entries are lines of the log", &C::audit_log,
                  CheckFile),
      TextsSetting(
          "model_roots", "DIR",
          "LoadModel reads below these folders only; unset: anywhere while only this machine "
          "reaches the server, else nowhere",
          "a folder", &C::model_roots),
      TextsSetting("webhook_hosts", "HOST[:PORT]",
                   "hosts to which ends of jobs may be reported; unset: there are no webhooks",
                   "a host", &C::webhook_hosts),
      TextSetting("webhook_secret", "FILE",
                  "file of the secret that signs webhooks: whsec_ and base64", &C::webhook_secret,
                  CheckFile),
      TextSetting("webhook_ca", "FILE",
                  "PEM file of the authorities that receivers of webhooks are verified with; "
                  "unset: the system's",
                  &C::webhook_ca, CheckFile),
      SwitchSetting("webhook_http", "webhooks may go over http as well as https", &C::webhook_http),
      SwitchSetting("webhook_private",
                    "webhooks may go to addresses of private networks and of this machine",
                    &C::webhook_private),
      TextSetting("otlp_endpoint", "URL",
                  "collector to which traces are exported (OTLP over HTTP as JSON), for example "
                  "http://127.0.0.1:4318; unset: none are (docs/operate/tracing.md)",
                  &C::otlp_endpoint, CheckFile),
      TextSetting("otlp_headers", "FILE",
                  "file of what is sent to the collector in the header: 'NAME: VALUE' a line",
                  &C::otlp_headers, CheckFile),
      TextSetting(
          "otlp_ca", "FILE",
          "PEM file of the authorities that the collector is verified with; unset: the system's",
          &C::otlp_ca, CheckFile),
      {"otlp_attributes", "KEY=VALUE",
       "attributes of the server in its traces, for example service.name=wan-eu",
       Setting::Form::kMap, SetOtlpAttributes,
       [](const ServerConfig& config) { return config.otlp_attributes; }},
      RatioSetting("otlp_sampling_ratio",
                   "share of jobs that are traced, of those whose callers sent no trace",
                   &C::otlp_sampling_ratio),
      IntegerSetting("max_connections",
                     "most open connections of the gRPC port; 0: a quarter of the file descriptors",
                     &C::max_connections, 0, 1'000'000),
      IntegerSetting("max_connections_per_address",
                     "most of these from one address; never more than half of all",
                     &C::max_connections_per_address, 1, 1'000'000),
      TextSetting("data_dir", "DIR",
                  "folder of jobs, events and videos; only one server at a time can use it "
                  "(default: wanserve in the user's data folder)",
                  &C::data_dir, CheckDataDir),
      TextSetting("store", "URL",
                  "PostgreSQL database of jobs and events, for example postgresql://wan@db/wan; "
                  "unset: a file in data_dir (docs/operate/postgresql.md)",
                  &C::store, CheckStore),
      TextSetting("objects", "URL",
                  "store that also keeps files and savepoints of jobs: "
                  "s3://BUCKET/PREFIX[?endpoint=URL&region=NAME&path_style=true|false] or "
                  "file:///FOLDER; unset: only data_dir has them (docs/operate/objects.md)",
                  &C::objects, CheckObjects),
      TextSetting("objects_ca", "FILE",
                  "PEM file of the authorities that this store is verified with; unset: the "
                  "system's",
                  &C::objects_ca, CheckFile),
      Reloading(BytesSetting(
          "disk_reserve",
          "bytes of data_dir's disk that new jobs leave free beside what accepted jobs need",
          &C::disk_reserve)),
      Reloading(RetentionSetting(
          "retain_completed",
          "keep completed jobs so long, so many bytes of them, or so many, for example "
          "30d,200GiB; unset: all",
          &RetentionPolicy::completed)),
      Reloading(
          RetentionSetting("retain_failed", "the same for failed jobs", &RetentionPolicy::failed)),
      Reloading(RetentionSetting("retain_cancelled", "the same for cancelled jobs",
                                 &RetentionPolicy::cancelled)),
      Reloading(RetentionSetting("retain_artifacts",
                                 "the same for the files of completed jobs, whose jobs stay",
                                 &RetentionPolicy::artifacts)),
  };
}

// Returns the settings for running jobs and for stopping the server.
std::vector<Setting> JobSettings() {
  using C = ServerConfig;
  return {
      SecondsSetting(
          "heartbeat_interval",
          "send a heartbeat over a stream that has carried nothing for so many seconds; 0: never",
          &C::heartbeat_interval, 86'400),
      SecondsSetting(
          "caller_grace",
          "how long a job of Generate with a request_id goes on without its caller, who may take "
          "it up again",
          &C::caller_grace, 86'400),
      IntegerSetting("queue_capacity", "most jobs that may wait", &C::queue_capacity, 1, 1'000'000),
      IntegerSetting(
          "max_attempts",
          "a job ends as FAILED after this many attempts that took the process or the device "
          "with them",
          &C::max_attempts, 1, 100),
      SecondsSetting(
          "checkpoint_interval",
          "seconds of work after which a job's state is kept, to go on from there after a "
          "restart; 0: after every step",
          &C::checkpoint_interval, 86'400),
      IntegerSetting(
          "preempt_priority_gap",
          "a job takes over from the running one at the end of a step if its priority is "
          "higher by this much; 0: never",
          &C::preempt_priority_gap, 0, 200),
      SwitchSetting("warm_up", "run each model once before it counts as ready", &C::warm_up),
      {"warm_up_shapes", "WxHxFRAMES", "sizes of the warm-up run; unset: one small video",
       Setting::Form::kList, SetShapes, GetShapes},
      Reloading(ChoiceSetting<StopMode>(
          "shutdown_mode", "auto|finish|requeue",
          "what happens to the running job at SIGTERM: it may finish within the grace time, it "
          "stops and goes on after the restart, or whichever of the two costs less (auto)",
          Setting::Form::kText, &C::shutdown_mode,
          {{"auto", StopMode::kAuto},
           {"finish", StopMode::kFinish},
           {"requeue", StopMode::kRequeue}})),
      Reloading(SecondsSetting("shutdown_grace_seconds",
                               "most seconds that shutdown_mode auto and finish wait",
                               &C::shutdown_grace_seconds, 86'400)),
      SecondsSetting(
          "device_lost_grace_seconds",
          "seconds in which a server that lost its device still answers before it exits with 75",
          &C::device_lost_grace_seconds, 3'600),
      Reloading(ChoiceSetting<LogLevel>("log_level", "debug|info|warning|error",
                                        "lowest level that is logged", Setting::Form::kText,
                                        &C::log_level,
                                        {{"debug", LogLevel::kDebug},
                                         {"info", LogLevel::kInfo},
                                         {"warning", LogLevel::kWarning},
                                         {"error", LogLevel::kError}})),
      Reloading(ChoiceSetting<LogFormat>(
          "log_format", "auto|json|text",
          "format of the log's lines; auto: text on a terminal, otherwise json",
          Setting::Form::kText, &C::log_format,
          {{"auto", LogFormat::kAuto}, {"json", LogFormat::kJson}, {"text", LogFormat::kText}})),
  };
}

}  // namespace

bool IsMany(Setting::Form form) {
  return form != Setting::Form::kText && form != Setting::Form::kNumber;
}

const std::vector<Setting>& Settings() {
  static const auto* const settings = [] {
    auto* const all = new std::vector<Setting>();
    for (const std::vector<Setting>& part : {ServiceSettings(), EngineSettings(), JobSettings()}) {
      all->insert(all->end(), part.begin(), part.end());
    }
    return all;
  }();
  return *settings;
}

const Setting* FindSetting(std::string_view key) {
  for (const Setting& setting : Settings()) {
    if (setting.key == key) return &setting;
  }
  return nullptr;
}

const Setting* NearestSetting(std::string_view key) {
  std::vector<std::string_view> keys;
  for (const Setting& setting : Settings()) keys.push_back(setting.key);
  return FindSetting(NearestName(key, keys));
}

absl::Status Apply(const Setting& setting, const std::vector<std::string>& values,
                   ServerConfig& config) {
  for (const std::string& value : values) {
    if (IsUtf8(value)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("is '", absl::CHexEscape(value), "', which is not UTF-8; must be UTF-8"));
  }
  return setting.set(values, config);
}

std::string FlagOf(const Setting& setting) {
  // A flag is given once for each entry of a list, so its name is the singular.
  std::string name(setting.key);
  if (IsMany(setting.form) && setting.form != Setting::Form::kTexts) {
    name = name.ends_with("ies") ? name.substr(0, name.size() - 3) + "y"
                                 : name.substr(0, name.size() - 1);
  }
  return "--" + absl::StrReplaceAll(name, {{"_", "-"}});
}

}  // namespace wan::server
