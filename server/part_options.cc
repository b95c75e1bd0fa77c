#include "server/part_options.h"

#include <google/protobuf/stubs/common.h>
#include <grpcpp/version_info.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/config/device_groups.h"
#include "server/config/host_port.h"
#include "server/config/model_lora.h"
#include "server/jobs/lora_folders.h"
#include "server/postgres/postgres_job_store.h"
#include "server/process/descriptors.h"
#include "server/store/durable_file.h"
#include "server/store/folder_owner.h"

namespace wan::server {
namespace {

bool AllCallersAreOnThisMachine(const ServerConfig& config) {
  return IsLoopback(config.listen) &&
         (!config.admin_listen.has_value() || IsLoopback(*config.admin_listen));
}

}  // namespace

LoraFolders LoraFoldersOf(const ServerConfig& config) {
  std::vector<LoraFolders::Folder> folders;
  for (const std::string& text : config.lora_dirs) {
    const LoraFolderSetting setting = ParseLoraFolder(text);
    folders.push_back({setting.model, setting.path});
  }
  LoraFolders::Schedules schedules;
  for (const LoraScheduleSetting& setting : config.lora_schedules) {
    schedules[{setting.model, setting.name}] = setting.schedule;
  }
  return LoraFolders(std::move(folders), std::move(schedules));
}

std::vector<std::string> ModelNamesOf(const ServerConfig& config) {
  std::vector<std::string> names;
  for (const ModelSpec& model : config.models) names.push_back(model.name);
  return names;
}

std::vector<std::string> DeviceNamesOf(const ServerConfig& config) {
  std::vector<std::string> names;
  for (const DeviceGroup& group : GroupsOf(config)) names.push_back(DevicesText(group));
  return names;
}

ServerFacts FactsOf(const ServerConfig& config, const Engine& engine, const Clock& clock,
                    std::map<std::string, std::string> libraries) {
  libraries["grpc"] = GRPC_CPP_VERSION_STRING;
  libraries["protobuf"] = google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
  std::vector<wan::v1::DeviceGroup> groups;
  for (const DeviceGroup& group : GroupsOf(config)) {
    wan::v1::DeviceGroup& added = groups.emplace_back();
    added.set_number(static_cast<int>(groups.size()) - 1);
    added.mutable_devices()->Assign(group.devices.begin(), group.devices.end());
    added.mutable_models()->Assign(group.models.begin(), group.models.end());
  }
  return {WAN_VERSION, std::move(libraries), clock.Now(), engine.Device().dtype, std::move(groups)};
}

ConnectionLimits ConnectionLimitsOf(const ServerConfig& config) {
  ConnectionLimits limits;
  limits.total =
      config.max_connections > 0 ? config.max_connections : ConnectionsFor(DescriptorsNow().limit);
  limits.per_address = std::min(config.max_connections_per_address, std::max(1, limits.total / 2));
  return limits;
}

StopSettings StopSettingsOf(const ServerConfig& config) {
  return {config.shutdown_mode, absl::Seconds(config.shutdown_grace_seconds)};
}

std::optional<Role> CertificateRoleOf(const ServerConfig& config) {
  switch (config.client_certificate_role) {
    case ClientCertificateRole::kNone:
      return std::nullopt;
    case ClientCertificateRole::kViewer:
      return Role::kViewer;
    case ClientCertificateRole::kUser:
      return Role::kUser;
    case ClientCertificateRole::kAdmin:
      return Role::kAdmin;
  }
  return std::nullopt;
}

WebhookRules WebhookRulesOf(const ServerConfig& config) {
  return {config.webhook_hosts, config.webhook_http, config.webhook_private};
}

SpanExporterOptions TraceOptionsOf(const ServerConfig& config) {
  char host[HOST_NAME_MAX + 1] = {};
  gethostname(host, HOST_NAME_MAX);
  std::map<std::string, std::string> resource = {
      {"service.name", "wanserve"},
      {"service.version", WAN_VERSION},
      {"service.instance.id", std::string(host) + ":" + std::to_string(config.listen.port)},
      {"host.name", host}};
  for (const std::string& attribute : config.otlp_attributes) {
    const size_t equals = attribute.find('=');
    resource[attribute.substr(0, equals)] = attribute.substr(equals + 1);
  }
  SpanExporterOptions options;
  options.version = WAN_VERSION;
  for (const auto& [key, value] : resource) options.resource.push_back({key, value});
  return options;
}

StoreOpener StoreOpenerOf(const ServerConfig& config) {
  if (config.store.empty()) return nullptr;
  // The lock lives as long as the service, which keeps the function.
  return [url = config.store, folder = std::filesystem::path(config.data_dir),
          lock = std::shared_ptr<const Descriptor>()](
             std::function<void(const absl::Status&)> on_problem) mutable
         -> absl::StatusOr<std::unique_ptr<JobStore>> {
    if (lock == nullptr) {
      absl::StatusOr<std::unique_ptr<const Descriptor>> locked = LockFolder(folder);
      if (!locked.ok()) return locked.status();
      lock = *std::move(locked);
    }
    return OpenPostgresJobStore(
        url, std::move(on_problem), SystemClock(),
        [&folder](const std::string& database_id) { return BindFolder(folder, database_id); });
  };
}

JobServiceOptions JobOptionsOf(const ServerConfig& config, bool authenticated) {
  JobServiceOptions options;
  options.data_dir = config.data_dir;
  options.open_store = StoreOpenerOf(config);
  options.disk_reserve_bytes = config.disk_reserve;
  options.retention = config.retention;
  options.queue_capacity = config.queue_capacity;
  options.max_attempts = config.max_attempts;
  options.caller_grace = absl::Seconds(config.caller_grace);
  options.savepoint_interval = absl::Seconds(config.checkpoint_interval);
  options.preempt_priority_gap = config.preempt_priority_gap;
  options.warm_up_on_load = config.warm_up;
  options.warm_up_shapes = config.warm_up_shapes;
  options.server_version = WAN_VERSION;
  options.server_revision = WAN_REVISION;
  if (!config.model_roots.empty()) {
    options.model_roots = ModelRoots(config.model_roots);
  } else if (authenticated || !AllCallersAreOnThisMachine(config)) {
    options.model_roots = ModelRoots(std::vector<std::string>());
  }
  options.lora_folders = LoraFoldersOf(config);
  options.device_names = DeviceNamesOf(config);
  options.may_have = [groups = GroupsOf(config)](int group, std::string_view model) {
    return MayHave(groups, static_cast<size_t>(group), model);
  };
  return options;
}

}  // namespace wan::server
