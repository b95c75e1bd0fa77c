// The client for wan.v1.Telemetry: facts about the server and samples of its devices. As in
// VideoClient, every function blocks, may be called from several threads at once, and returns
// CANCELLED early when a stop is requested; client/error.h describes the errors. No call is
// retried.
#pragma once

#include <functional>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client {

class TelemetryClient {
 public:
  // `connection` must outlive this object.
  explicit TelemetryClient(const Connection& connection);

  // Calls `on_samples` on the calling thread for each round of samples, until request.count rounds
  // have come (0: until `stop`). Returns CANCELLED when `stop` is requested.
  absl::Status WatchDevices(
      const wan::v1::WatchDevicesRequest& request,
      const std::function<void(const wan::v1::WatchDevicesResponse&)>& on_samples,
      const std::stop_token& stop = {}) const;

  absl::StatusOr<wan::v1::ServerInfo> GetServerInfo(const std::stop_token& stop = {}) const;

 private:
  const Connection& connection_;
};

}  // namespace wan::client
