#include "client/telemetry_client.h"

#include <utility>

#include "client/calls.h"
#include "wan/v1/telemetry.grpc.pb.h"

namespace wan::client {

using Service = wan::v1::Telemetry::StubInterface;

struct TelemetryClient::Stub {
  std::unique_ptr<Service> service;
};

TelemetryClient::TelemetryClient(const Connection& connection)
    : connection_(connection), stub_(new Stub{wan::v1::Telemetry::NewStub(connection.channel())}) {}

TelemetryClient::~TelemetryClient() = default;

absl::Status TelemetryClient::WatchDevices(
    const wan::v1::WatchDevicesRequest& request,
    const std::function<void(const wan::v1::WatchDevicesResponse&)>& on_samples,
    const std::stop_token& stop) const {
  return CallStream<wan::v1::WatchDevicesResponse>(
      connection_, stop,
      [&](grpc::ClientContext* context) { return stub_->service->WatchDevices(context, request); },
      [&](const wan::v1::WatchDevicesResponse& samples) {
        on_samples(samples);
        return absl::OkStatus();
      });
}

absl::StatusOr<wan::v1::ServerInfo> TelemetryClient::GetServerInfo(
    const std::stop_token& stop) const {
  return CallUnary(connection_, stop, *stub_->service, &Service::GetServerInfo,
                   wan::v1::GetServerInfoRequest());
}

}  // namespace wan::client
