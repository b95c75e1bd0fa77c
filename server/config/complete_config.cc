#include "server/config/complete_config.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace wan::server {
namespace {

// Refuses the settings of a collector of traces if otlp_endpoint is not set.
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

absl::Status CheckObjects(const ServerConfig& config) {
  if (config.objects_ca.empty() || !config.objects.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("objects_ca is ", config.objects_ca,
                   ", but no object store is used; set objects as well, for example "
                   "s3://videos/wan"));
}

// Refuses origins that no browser sends, such as URLs with a path.
absl::Status CheckOrigins(const ServerConfig& config) {
  for (const std::string& origin : config.http_origins) {
    const size_t scheme = origin.find("://");
    const std::string name = origin.substr(0, scheme);
    const bool valid = scheme != std::string::npos && (name == "http" || name == "https") &&
                       origin.size() > scheme + 3 &&
                       origin.find_first_of("/*?#@ ", scheme + 3) == std::string::npos &&
                       origin == absl::AsciiStrToLower(origin);
    if (valid) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("http_origins has '", origin,
                     "'; must be scheme, host and port of a page in lower case, for example "
                     "https://studio.example.com or http://127.0.0.1:5173"));
  }
  return absl::OkStatus();
}

// Checks the settings of authentication and TLS.
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

// Fills in `device` from `groups`, or with the CPU, and checks that the two settings agree.
absl::Status CompleteGroups(ServerConfig& config) {
  const std::vector<std::string> devices = DevicesOf(config);
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
  // If no model is set, the server loads the demo model, whose name this function does not know.
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

// Transformers whose weights are kept in 8 bits cannot compute exactly.
absl::Status CompleteQuality(EngineOptions& engine) {
  if (!engine.quality) engine.quality = DefaultQuality(engine.eight_bit_weights);
  if (!engine.eight_bit_weights.transformers || RoundsToEightBits(*engine.quality)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "quality is ", std::string(NameOf(*engine.quality)),
      "; must be high or fast, or be left out, where eight_bit_weights names transformers"));
}

}  // namespace

absl::Status Complete(ServerConfig& config) {
  if (absl::Status status = CompleteGroups(config); !status.ok()) return status;
  if (config.engine.dtype.empty()) {
    config.engine.dtype = config.devices.front().starts_with("cpu") ? "fp32" : "bf16";
  }
  if (!config.engine.vae_precision) {
    config.engine.vae_precision = DefaultVaePrecision(config.engine.dtype);
  }
  if (absl::Status status = CompleteQuality(config.engine); !status.ok()) return status;
  if (config.data_dir.empty()) {
    return absl::InvalidArgumentError(
        "data_dir is not set, and the environment has neither XDG_DATA_HOME nor HOME; name the "
        "folder for jobs and videos with --data-dir DIR, or with data_dir in the file");
  }
  if (absl::Status status = AssignLoras(config.loras, config.models); !status.ok()) return status;
  if (absl::Status status =
          AssignSchedules(config.lora_schedules, !config.lora_dirs.empty(), config.models);
      !status.ok()) {
    return status;
  }
  for (const std::string& text : config.lora_dirs) {
    const LoraFolderSetting folder = ParseLoraFolder(text);
    const bool known = std::any_of(config.models.begin(), config.models.end(),
                                   [&](const ModelSpec& m) { return m.name == folder.model; });
    if (folder.model.empty() || known) continue;
    return absl::InvalidArgumentError(absl::StrCat("lora_dirs is '", text, "', whose model '",
                                                   folder.model, "' models does not have"));
  }
  if (config.listen == config.metrics_listen && config.listen.port != 0) {
    return absl::InvalidArgumentError(absl::StrCat("listen and metrics_listen are both ",
                                                   ToString(config.listen),
                                                   "; give each an address of its own"));
  }
  // Another address that the operator chose may have the default port of http_listen.
  const auto has_http_port = [&config](const std::optional<HostPort>& address) {
    return address.has_value() && address->port == config.http_listen->port;
  };
  if (config.http_listen.has_value() && !config.http_listen_chosen &&
      (has_http_port(config.listen) || has_http_port(config.admin_listen) ||
       has_http_port(config.metrics_listen))) {
    config.http_listen.reset();
  }
  if (config.webhook_hosts.empty() != config.webhook_secret.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("webhook_hosts and webhook_secret belong together: set ",
                     config.webhook_hosts.empty() ? "webhook_hosts" : "webhook_secret", ", too"));
  }
  if (absl::Status status = CheckOtlp(config); !status.ok()) return status;
  if (absl::Status status = CheckObjects(config); !status.ok()) return status;
  if (absl::Status status = CheckOrigins(config); !status.ok()) return status;
  return CheckAccess(config);
}

}  // namespace wan::server
