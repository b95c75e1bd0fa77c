// The whole server: jobs, services, health, reflection and metrics around its engines.
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
  // Opens the data folder, listens, and begins to load the configured models; until one of them is
  // warm the server answers, but health says NOT_SERVING. A model that cannot be loaded is FAILED
  // and leaves the server up.
  //
  // UNAVAILABLE if an address is taken or another server has the folder; else JobService::Open's
  // errors. The arguments must outlive the server. `libraries` is for GetServerInfo, beside what
  // the server itself links.
  //
  // `engines` has that of each device group of the config (GroupsOf), by number. A group whose
  // device is lost leaves, and the others serve on. When the last one is lost, health says
  // NOT_SERVING, no job or model task begins any more, new jobs are refused (DEVICE_LOST), and
  // everything else is answered as before. The server then calls `on_device_lost`, once, on a
  // thread of its own; the caller of Start ends the process.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const ServerConfig& config, const std::vector<Engine*>& engines, Clock& clock, Logger& logger,
      std::map<std::string, std::string> libraries = {},
      std::function<void()> on_device_lost = [] {});
  // The same for one group.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const ServerConfig& config, Engine& engine, Clock& clock, Logger& logger,
      std::map<std::string, std::string> libraries = {},
      std::function<void()> on_device_lost = [] {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Stops.
  ~Server();

  // With the ports that were taken.
  HostPort grpc_address() const;
  // Nothing unless there is an address for administrators.
  std::optional<HostPort> admin_address() const;
  // Nothing unless the OpenAI video API is on.
  std::optional<HostPort> http_address() const;
  HostPort metrics_address() const;

  // Returns OK unless a running job makes no progress (server/jobs/progress_watch.h), which only
  // a restart ends. The log is told of every change.
  absl::Status CheckAlive();

  // Reads the files of principals, quotas and TLS again, and takes over those settings of `next`
  // that can change while the server runs; an error in place of `next` says why they cannot be
  // read. The log has what was reloaded, what needs a restart, and what failed, which stays as it
  // was.
  void Reload(const absl::StatusOr<ServerConfig>& next);

  // Health says NOT_SERVING, new jobs are refused, the running one ends as the config's
  // shutdown_mode says, watchers are told, connections are closed. Idempotent; later callers wait
  // for the first.
  void Stop();

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace wan::server
