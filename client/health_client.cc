#include "client/health_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <memory>
#include <utility>

#include "grpc/health/v1/health.grpc.pb.h"

namespace wan::client {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using Service = grpc::health::v1::Health;

HealthClient::HealthClient(const Connection& connection) : connection_(connection) {}

namespace {

// Name of the trailing metadata that has the reasons: a serialized ServerInfo with only
// not_serving_reasons.
constexpr char kNotServingMetadata[] = "wan-not-serving-bin";

}  // namespace

absl::StatusOr<Health> HealthClient::Check(const std::string& service,
                                           const std::stop_token& stop) const {
  HealthCheckRequest request;
  request.set_service(service);
  HealthCheckResponse response;
  wan::v1::ServerInfo info;
  const absl::Status status = connection_.Call(
      stop, [&](const std::shared_ptr<grpc::Channel>& channel, grpc::ClientContext& context) {
        grpc::Status outcome = Service::NewStub(channel)->Check(&context, request, &response);
        const auto& metadata = context.GetServerTrailingMetadata();
        const auto why = metadata.find(kNotServingMetadata);
        // Ignore reasons that cannot be read, because the status is valid without them.
        if (why != metadata.end() &&
            !info.ParseFromArray(why->second.data(), static_cast<int>(why->second.size()))) {
          info.Clear();
        }
        return outcome;
      });
  if (!status.ok()) return status;
  return Health{HealthCheckResponse::ServingStatus_Name(response.status()),
                std::move(*info.mutable_not_serving_reasons())};
}

}  // namespace wan::client
