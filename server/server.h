// The whole server: jobs, services, health, reflection and metrics for a set of engines.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/clock.h"
#include "engine/api/engine.h"
#include "server/config/server_config.h"
#include "server/logging/logger.h"

namespace wan::server {

// Thread-safe.
class Server {
 public:
  // Opens the data folder, listens, and begins to load the configured models. Until one of them is
  // READY, the server answers but health is NOT_SERVING. If a model cannot be loaded, it is FAILED
  // and the server continues.
  //
  // UNAVAILABLE if an address is taken or another server uses the folder; else JobService::Open's
  // errors. The arguments must outlive the server. `libraries` is shown in GetServerInfo in
  // addition to the libraries that the server links.
  //
  // `engines` has the engine of each device group of the config (GroupsOf), by number. If a group
  // loses its device, the other groups still serve. When the last one is lost, health is
  // NOT_SERVING, no job or model task begins, new jobs are refused (DEVICE_LOST), and other calls
  // are answered as before. The server then calls `on_device_lost` once, on a thread of its own;
  // the caller of Start should end the process.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const ServerConfig& config, const std::vector<Engine*>& engines, Clock& clock, Logger& logger,
      std::map<std::string, std::string> libraries = {},
      std::function<void()> on_device_lost = [] {});
  // The same with one group.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const ServerConfig& config, Engine& engine, Clock& clock, Logger& logger,
      std::map<std::string, std::string> libraries = {},
      std::function<void()> on_device_lost = [] {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Calls Stop.
  ~Server();

  // These return addresses with the actual ports.
  HostPort grpc_address() const;
  // Nullopt if there is no separate address for administrators.
  std::optional<HostPort> admin_address() const;
  // Nullopt if the OpenAI video API is off.
  std::optional<HostPort> http_address() const;
  HostPort metrics_address() const;

  // Returns an error if a running job makes no progress (server/jobs/progress_watch.h), which only
  // a restart ends. Logs every change of the result.
  absl::Status CheckAlive();

  // Reads the files of principals, quotas and TLS again, and applies the settings of `next` that
  // can change while the server runs. If `next` is an error, no setting changes. Logs what was
  // reloaded, what needs a restart, and what failed and keeps its old content.
  void Reload(const absl::StatusOr<ServerConfig>& next);

  // Sets health to NOT_SERVING, refuses new jobs, ends running jobs as shutdown_mode says, ends
  // watchers and closes connections. Idempotent; later callers wait for the first.
  void Stop();

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace wan::server
