#include "server/config/settings.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "engine/api/utf8.h"
#include "server/config/nearest_name.h"
#include "server/config/setting_kinds.h"

namespace wan::server {
namespace {

absl::StatusOr<std::vector<DeviceGroup>> ReadGroups(const SettingValues& values) {
  std::vector<DeviceGroup> groups;
  for (const std::string& value : values) {
    absl::StatusOr<DeviceGroup> group = ParseDeviceGroup(value);
    if (!group.ok()) return group.status();
    groups.push_back(*std::move(group));
  }
  if (absl::Status status = CheckDeviceGroups(groups); !status.ok()) return status;
  return groups;
}

absl::Status SetDevices(const SettingValues& values, ServerConfig& config) {
  const absl::StatusOr<std::vector<DeviceGroup>> groups = ReadGroups(values);
  if (!groups.ok()) return groups.status();
  if (groups->empty()) return absl::InvalidArgumentError("is an empty list; it must name a device");
  config.devices.clear();
  for (const DeviceGroup& group : *groups) {
    if (!group.models.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "is '", ToString(group), "'; write a group with its models into groups (--group)"));
    }
    config.devices.push_back(ToString(group));
  }
  return absl::OkStatus();
}

SettingValues GetDevices(const ServerConfig& config) {
  SettingValues values;
  for (const DeviceGroup& group : GroupsOf(config)) values.push_back(DevicesText(group));
  return values;
}

absl::Status SetGroups(const SettingValues& values, ServerConfig& config) {
  absl::StatusOr<std::vector<DeviceGroup>> groups = ReadGroups(values);
  if (!groups.ok()) return groups.status();
  config.groups = *std::move(groups);
  return absl::OkStatus();
}

SettingValues GetGroups(const ServerConfig& config) {
  SettingValues values;
  for (const DeviceGroup& group : config.groups) values.push_back(ToString(group));
  return values;
}

absl::Status CheckDtype(const std::string& dtype) {
  return dtype == "fp32" || dtype == "bf16" ? absl::OkStatus() : MustBe(dtype, "fp32 or bf16");
}

// An empty text stands for no file.
absl::Status CheckFile(const std::string& /*file*/) { return absl::OkStatus(); }

absl::Status CheckH264Preset(const std::string& preset) {
  return IsH264Preset(preset)
             ? absl::OkStatus()
             : MustBe(preset, absl::StrCat("one of ", absl::StrJoin(kH264Presets, ", ")));
}

absl::Status CheckVaePrecision(const std::string& precision) {
  return ParseVaePrecision(precision).has_value() ? absl::OkStatus()
                                                  : MustBe(precision, "fp32, tf32, fp16 or bf16");
}

absl::Status CheckDataDir(const std::string& folder) {
  return folder.empty() ? absl::InvalidArgumentError("is empty; it must name a folder")
                        : absl::OkStatus();
}

absl::Status SetModels(const SettingValues& values, ServerConfig& config) {
  std::vector<ModelSpec> models;
  std::set<std::string> names;
  for (const std::string& value : values) {
    const size_t equals = value.find('=');
    ModelSpec model;
    model.name = value.substr(0, equals);
    if (equals != std::string::npos) model.path = value.substr(equals + 1);
    if (!IsName(model.name) || model.path.empty()) {
      return MustBe(value,
                    "NAME=PATH with a name of 1 to 63 letters, digits, '.', '_' and '-', and a "
                    "checkpoint's folder or synthetic:ti2v-5b");
    }
    if (!names.insert(model.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("names '", model.name, "' twice; each model needs a name of its own"));
    }
    models.push_back(std::move(model));
  }
  config.models = std::move(models);
  return absl::OkStatus();
}

SettingValues GetModels(const ServerConfig& config) {
  SettingValues values;
  for (const ModelSpec& model : config.models) values.push_back(model.name + "=" + model.path);
  return values;
}

absl::Status SetLoras(const SettingValues& values, ServerConfig& config) {
  std::vector<ModelLora> loras;
  std::set<std::string> keys;
  for (const std::string& value : values) {
    absl::StatusOr<ModelLora> lora = ParseModelLora(value);
    if (!lora.ok()) return lora.status();
    std::string key = ToString(*lora);
    key.resize(key.find('='));
    if (!keys.insert(key).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("names '", key, "' twice; each LoRA needs a name of its own"));
    }
    loras.push_back(*std::move(lora));
  }
  config.loras = std::move(loras);
  return absl::OkStatus();
}

SettingValues GetLoras(const ServerConfig& config) {
  SettingValues values;
  for (const ModelLora& lora : config.loras) values.push_back(ToString(lora));
  return values;
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

// What the collector is told or verified with is of no use without one.
absl::Status CheckOtlp(const ServerConfig& config) {
  if (!config.otlp_endpoint.empty()) return absl::OkStatus();
  for (const auto& [key, value] :
       {std::pair("otlp_headers", config.otlp_headers), std::pair("otlp_ca", config.otlp_ca)}) {
    if (value.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(key, " is ", value,
                     ", but no traces are exported; set otlp_endpoint as well, "
                     "for example http://127.0.0.1:4318"));
  }
  return absl::OkStatus();
}

std::vector<std::pair<std::string, ServiceAccess>> ServiceAccessWords() {
  return {{"public", ServiceAccess::kPublic},
          {"authenticated", ServiceAccess::kAuthenticated},
          {"off", ServiceAccess::kOff}};
}

// What is wrong with who may call, and over what.
absl::Status CheckAccess(const ServerConfig& config) {
  if (config.tls_cert.empty() != config.tls_key.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("tls_cert and tls_key belong together: set ",
                                                   config.tls_cert.empty() ? "tls_cert" : "tls_key",
                                                   ", too"));
  }
  if (config.tls_cert.empty() && !config.tls_client_ca.empty()) {
    return absl::InvalidArgumentError(
        "tls_client_ca needs tls_cert and tls_key: without TLS there are no client certificates");
  }
  if (config.insecure || !config.auth_tokens.empty() || !config.tls_client_ca.empty()) {
    return absl::OkStatus();
  }
  std::vector<std::pair<std::string, HostPort>> addresses = {{"listen", config.listen}};
  if (config.admin_listen.has_value()) addresses.emplace_back("admin_listen", *config.admin_listen);
  if (config.http_listen.has_value()) addresses.emplace_back("http_listen", *config.http_listen);
  for (const auto& [key, address] : addresses) {
    if (IsLoopback(address)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        key, " is ", ToString(address),
        ", which other machines may reach, and nothing says who may call: set auth_tokens "
        "(--auth-tokens FILE) or tls_client_ca, listen on 127.0.0.1, or give --insecure to serve "
        "everybody"));
  }
  return absl::OkStatus();
}

// Fills in the devices where only `groups` names them, or nothing does, and compares the two.
absl::Status CompleteGroups(ServerConfig& config) {
  const SettingValues devices = GetDevices(config);
  if (config.devices.empty()) config.devices = devices;
  if (devices != config.devices) {
    return absl::InvalidArgumentError(absl::StrCat(
        "device is ", absl::StrJoin(config.devices, " "), " and groups has ",
        absl::StrJoin(devices, " "), "; set one of the two, or both to the same devices"));
  }
  const std::vector<DeviceGroup> groups = GroupsOf(config);
  const auto has_place = [&](std::string_view model) {
    for (size_t i = 0; i < groups.size(); ++i) {
      if (MayHave(groups, i, model)) return true;
    }
    return false;
  };
  std::set<std::string> models;
  for (const ModelSpec& model : config.models) {
    models.insert(model.name);
    if (has_place(model.name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("models has '", model.name,
                     "', which no list of groups names; add it to one, or have a group without a "
                     "list"));
  }
  // Without any the server takes the demo model, which this cannot know.
  if (config.models.empty()) return absl::OkStatus();
  for (const DeviceGroup& group : groups) {
    for (const std::string& model : group.models) {
      if (models.contains(model)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("groups names the model '", model, "', which models does not have"));
    }
  }
  return absl::OkStatus();
}

absl::Status SetResidency(const SettingValues& values, ServerConfig& config) {
  std::vector<ComponentResidency> policies;
  for (const std::string& value : values) {
    const std::optional<ComponentResidency> entry = ParseComponentResidency(value);
    if (!entry.has_value()) {
      return MustBe(value,
                    "COMPONENT=POLICY with text_encoder, transformer, transformer_2 or vae, and "
                    "auto, resident, host, stream, disk or cpu");
    }
    for (const ComponentResidency& other : policies) {
      if (other.component == entry->component) {
        return absl::InvalidArgumentError(absl::StrCat("names ",
                                                       std::string(NameOf(entry->component)),
                                                       " twice; give each component one policy"));
      }
    }
    policies.push_back(*entry);
  }
  config.residency_policies = std::move(policies);
  return absl::OkStatus();
}

SettingValues GetResidency(const ServerConfig& config) {
  SettingValues values;
  for (const ComponentResidency& entry : config.residency_policies) {
    values.push_back(absl::StrCat(std::string(NameOf(entry.component)), "=",
                                  std::string(ResidencyPolicyName(entry.policy))));
  }
  return values;
}

// A setting whose new value a server takes over while it runs.
Setting Reloading(Setting setting) {
  setting.reloads = true;
  return setting;
}

// A table: one row for each setting.
// NOLINTNEXTLINE(readability-function-size)
std::vector<Setting> MakeSettings() {
  using C = ServerConfig;
  return {
      AddressSetting("listen", "address where gRPC listens; port 0 takes a free port", &C::listen),
      OptionalAddressSetting(
          "admin_listen",
          "address of its own for ModelManagement and Administration, which --listen "
          "does not serve then; unset: none",
          &C::admin_listen),
      OptionalAddressSetting("http_listen",
                             "address where the OpenAI video API listens; unset: it is off",
                             &C::http_listen),
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
      ChoiceSetting<bool>(
          "insecure", "true|false",
          "serve everybody who reaches the port, without authentication, on any address",
          Setting::Form::kNumber, &C::insecure, {{"true", true}, {"false", false}}),
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
      ChoiceSetting<bool>("webhook_http", "true|false",
                          "webhooks may go over http as well as https", Setting::Form::kNumber,
                          &C::webhook_http, {{"true", true}, {"false", false}}),
      ChoiceSetting<bool>("webhook_private", "true|false",
                          "webhooks may go to addresses of private networks and of this machine",
                          Setting::Form::kNumber, &C::webhook_private,
                          {{"true", true}, {"false", false}}),
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
                  "folder of jobs, events and videos; only one server at a time can use it",
                  &C::data_dir, CheckDataDir),
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
      {"models", "NAME=PATH",
       "models to load: the name that requests use, and a checkpoint's folder or "
       "synthetic:ti2v-5b; unset: the demo model",
       Setting::Form::kMap, SetModels, GetModels},
      {"loras", "[MODEL/]NAME[@EXPERT]=PATH",
       "LoRAs that requests may use: a safetensors file or a folder that PEFT wrote; @high or "
       "@low chooses one of two experts",
       Setting::Form::kMap, SetLoras, GetLoras},
      {"device", "cpu|cuda:N[,N]",
       "devices of a group, which make one video together; each further --device is another "
       "group, which makes a video of its own at the same time",
       Setting::Form::kTexts, SetDevices, GetDevices},
      {"groups", "DEVICE[=MODEL,MODEL]",
       "the same with the models that a group may have; unset: every group may have every model",
       Setting::Form::kGroups, SetGroups, GetGroups},
      TextSetting("dtype", "fp32|bf16",
                  "dtype in which models compute; unset: fp32 on the CPU, bf16 on a GPU", &C::dtype,
                  CheckDtype),
      TextSetting("vae_precision", "fp32|tf32|fp16|bf16",
                  "precision in which the video autoencoder computes, unless a request states one; "
                  "unset: fp32 with dtype fp32, else fp16",
                  &C::vae_precision, CheckVaePrecision),
      ChoiceSetting<bool>(
          "record_forwards", "true|false",
          "replay recorded forwards of videos that are so small that a GPU waits for "
          "launches; the results have the same bits",
          Setting::Form::kNumber, &C::record_forwards, {{"true", true}, {"false", false}}),
      ChoiceSetting<GuidanceBatching>(
          "guidance_batching", "auto|batched|split",
          "compute both forwards of a guided step in one batch, where memory allows it, or one "
          "after the other (split); auto: in one batch where that is faster",
          Setting::Form::kText, &C::guidance_batching,
          {{"auto", GuidanceBatching::kAuto},
           {"batched", GuidanceBatching::kBatched},
           {"split", GuidanceBatching::kSplit}}),
      TextSetting("h264_preset", "ultrafast|superfast|veryfast|faster|fast",
                  "libx264's preset for MP4 files: faster ones leave the processors more time",
                  &C::h264_preset, CheckH264Preset),
      IntegerSetting("h264_crf", "constant rate factor of MP4 files: lower is better and larger",
                     &C::h264_crf, kBestH264Crf, kWorstH264Crf),
      IntegerSetting("cpu_threads",
                     "number of threads that compute one operator on the CPU; 0: one for each core",
                     &C::cpu_threads, 0, 4096),
      BytesSetting(
          "device_memory_limit",
          "most device memory that the process uses, for example 24GiB; 0: all that is free",
          &C::device_memory_limit),
      ChoiceSetting<bool>(
          "gpm", "true|false",
          "measure SM activity with the driver's GPM counters (Hopper and later); false: "
          "report NVML's utilisation instead",
          Setting::Form::kNumber, &C::gpm, {{"true", true}, {"false", false}}),
      {"residency_policies", "COMPONENT=POLICY",
       "where the weights of text_encoder, transformer, transformer_2 or vae live: auto, resident, "
       "host, stream, disk or cpu; unset: auto",
       Setting::Form::kMap, SetResidency, GetResidency},
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
      ChoiceSetting<bool>("warm_up", "true|false", "run each model once before it counts as ready",
                          Setting::Form::kNumber, &C::warm_up, {{"true", true}, {"false", false}}),
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
      Reloading(ChoiceSetting<LogFormat>("log_format", "json|text", "format of the log's lines",
                                         Setting::Form::kText, &C::log_format,
                                         {{"json", LogFormat::kJson}, {"text", LogFormat::kText}})),
  };
}

}  // namespace

bool IsMany(Setting::Form form) {
  return form != Setting::Form::kText && form != Setting::Form::kNumber;
}

const std::vector<Setting>& Settings() {
  static const auto* const settings = new std::vector<Setting>(MakeSettings());
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
        absl::StrCat("is '", absl::CHexEscape(value), "', which is not UTF-8; it must be UTF-8"));
  }
  return setting.set(values, config);
}

std::string FlagOf(const Setting& setting) {
  // A flag is repeated for each entry of a list, so its name is the singular.
  std::string name(setting.key);
  if (IsMany(setting.form) && setting.form != Setting::Form::kTexts) {
    name = name.ends_with("ies") ? name.substr(0, name.size() - 3) + "y"
                                 : name.substr(0, name.size() - 1);
  }
  return "--" + absl::StrReplaceAll(name, {{"_", "-"}});
}

std::vector<DeviceGroup> GroupsOf(const ServerConfig& config) {
  if (!config.groups.empty()) return config.groups;
  std::vector<DeviceGroup> groups;
  for (const std::string& text : config.devices) {
    absl::StatusOr<DeviceGroup> group = ParseDeviceGroup(text);
    if (group.ok()) groups.push_back(*std::move(group));
  }
  if (groups.empty()) groups.push_back({{"cpu"}});
  return groups;
}

absl::Status Complete(ServerConfig& config) {
  if (absl::Status status = CompleteGroups(config); !status.ok()) return status;
  if (config.dtype.empty()) {
    config.dtype = config.devices.front().starts_with("cpu") ? "fp32" : "bf16";
  }
  if (config.vae_precision.empty()) {
    config.vae_precision = std::string(NameOf(DefaultVaePrecision(config.dtype)));
  }
  if (config.data_dir.empty()) {
    return absl::InvalidArgumentError(
        "data_dir is not set; name the folder for jobs and videos with --data-dir DIR, or with "
        "data_dir in the file");
  }
  if (absl::Status status = AssignLoras(config.loras, config.models); !status.ok()) return status;
  if (config.listen == config.metrics_listen && config.listen.port != 0) {
    return absl::InvalidArgumentError(absl::StrCat("listen and metrics_listen are both ",
                                                   ToString(config.listen),
                                                   "; give each an address of its own"));
  }
  if (config.webhook_hosts.empty() != config.webhook_secret.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("webhook_hosts and webhook_secret belong together: set ",
                     config.webhook_hosts.empty() ? "webhook_hosts" : "webhook_secret", ", too"));
  }
  if (absl::Status status = CheckOtlp(config); !status.ok()) return status;
  return CheckAccess(config);
}

}  // namespace wan::server
