#include "client/health_client.h"

#include "client/calls.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace wan::client {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using Service = grpc::health::v1::Health;

HealthClient::HealthClient(const Connection& connection) : connection_(connection) {}

absl::StatusOr<std::string> HealthClient::Check(const std::string& service,
                                                const std::stop_token& stop) const {
  HealthCheckRequest request;
  request.set_service(service);
  const absl::StatusOr<HealthCheckResponse> response =
      CallUnary<Service>(connection_, stop, &Service::StubInterface::Check, request);
  if (!response.ok()) return response.status();
  return HealthCheckResponse::ServingStatus_Name(response->status());
}

}  // namespace wan::client
