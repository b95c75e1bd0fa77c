// wan.v1.Telemetry: the server and its devices. Functions behave as those of VideoClient.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client {

class TelemetryClient {
 public:
  // `connection` must outlive it.
  explicit TelemetryClient(const Connection& connection);
  ~TelemetryClient();

  // One call of `on_samples` a round; request.count rounds, or until `stop` is requested.
  absl::Status WatchDevices(
      const wan::v1::WatchDevicesRequest& request,
      const std::function<void(const wan::v1::WatchDevicesResponse&)>& on_samples,
      const std::stop_token& stop = {}) const;

  absl::StatusOr<wan::v1::ServerInfo> GetServerInfo(const std::stop_token& stop = {}) const;

 private:
  struct Stub;

  const Connection& connection_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace wan::client
