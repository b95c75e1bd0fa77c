#include "client/administration_client.h"

#include "client/calls.h"
#include "wan/v1/administration.grpc.pb.h"

namespace wan::client {

using Service = wan::v1::Administration;
using Stub = Service::StubInterface;

AdministrationClient::AdministrationClient(const Connection& connection)
    : connection_(connection) {}

absl::StatusOr<wan::v1::DrainResponse> AdministrationClient::Drain(
    const wan::v1::DrainRequest& request, const std::stop_token& stop) const {
  return CallUnary<Service>(connection_, stop, &Stub::Drain, request);
}

absl::StatusOr<wan::v1::UndrainResponse> AdministrationClient::Undrain(
    const std::stop_token& stop) const {
  return CallUnary<Service>(connection_, stop, &Stub::Undrain, wan::v1::UndrainRequest());
}

}  // namespace wan::client
