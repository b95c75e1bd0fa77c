// The whole server: jobs, services, health, reflection and metrics for one or several engines.
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
  // Opens the data folder, listens, and begins to load the configured models. Until one of the
  // models is READY, the server answers calls, but its health is NOT_SERVING. If a model cannot be
  // loaded, the model becomes FAILED and the server continues.
  //
  // Fails with UNAVAILABLE if an address is taken or another server uses the folder; otherwise with
  // the errors of JobService::Open. The arguments must outlive the server. `libraries` is shown in
  // GetServerInfo in addition to the libraries that the server links.
  //
  // `engines` has the engine of each device group of the config (GroupsOf); the index is the
  // group's number. If a group loses its device, the other groups go on serving. When the last
  // group has lost its device, health is NOT_SERVING, no job or model task begins, the server
  // refuses new jobs (DEVICE_LOST), and answers other calls as before. The server then calls
  // `on_device_lost` once, on another thread; the code that called Start should end the process.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const ServerConfig& config, const std::vector<Engine*>& engines, Clock& clock, Logger& logger,
      std::map<std::string, std::string> libraries = {},
      std::function<void()> on_device_lost = [] {});
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // Calls Stop if nobody has.
  ~Server();

  // The following functions return addresses with their actual ports.
  HostPort grpc_address() const;
  // Returns nullopt if the server has no separate address for administrators.
  std::optional<HostPort> admin_address() const;
  // Returns nullopt if the OpenAI video API is off.
  std::optional<HostPort> http_address() const;
  HostPort metrics_address() const;

  // Returns an error if a running job makes no progress (server/jobs/progress_watch.h); only a
  // restart of the process ends such a job. Logs every change of the result.
  absl::Status CheckAlive();

  // Reads the files of principals, quotas and TLS again, and applies those settings of `next` that
  // can change while the server runs. If `next` is an error, no setting changes. Logs the files and
  // settings that were reloaded, the settings that need a restart, and the files that could not be
  // read and keep their old content.
  void Reload(const absl::StatusOr<ServerConfig>& next);

  // Sets health to NOT_SERVING, refuses new jobs, ends running jobs as shutdown_mode says, ends
  // watchers and closes connections. A second call only waits until the first call has ended.
  void Stop();

 private:
  struct State;
  explicit Server(std::unique_ptr<State> state);

  const std::unique_ptr<State> state_;
};

}  // namespace wan::server
