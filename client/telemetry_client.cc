#include "client/telemetry_client.h"

#include "client/calls.h"
#include "wan/v1/telemetry.grpc.pb.h"

namespace wan::client {

using Service = wan::v1::Telemetry;
using Stub = Service::StubInterface;

TelemetryClient::TelemetryClient(const Connection& connection) : connection_(connection) {}

absl::Status TelemetryClient::WatchDevices(
    const wan::v1::WatchDevicesRequest& request,
    const std::function<void(const wan::v1::WatchDevicesResponse&)>& on_samples,
    const std::stop_token& stop) const {
  return CallStream<Service, wan::v1::WatchDevicesResponse>(
      connection_, stop,
      [&](Stub& stub, grpc::ClientContext* context) { return stub.WatchDevices(context, request); },
      [&](const wan::v1::WatchDevicesResponse& samples) {
        if (!samples.has_heartbeat()) on_samples(samples);
        return absl::OkStatus();
      });
}

absl::StatusOr<wan::v1::ServerInfo> TelemetryClient::GetServerInfo(
    const std::stop_token& stop) const {
  return CallUnary<Service>(connection_, stop, &Stub::GetServerInfo,
                            wan::v1::GetServerInfoRequest());
}

}  // namespace wan::client
