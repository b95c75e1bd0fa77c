#include "client/model_client.h"

#include "client/calls.h"
#include "wan/v1/model_management.grpc.pb.h"

namespace wan::client {

using Service = wan::v1::ModelManagement;
using Stub = Service::StubInterface;

ModelClient::ModelClient(const Connection& connection) : connection_(connection) {}

absl::StatusOr<wan::v1::ListModelsResponse> ModelClient::ListModels(
    const std::stop_token& stop) const {
  return CallUnary<Service>(connection_, stop, &Stub::ListModels, wan::v1::ListModelsRequest());
}

absl::StatusOr<wan::v1::Model> ModelClient::LoadModel(const wan::v1::LoadModelRequest& request,
                                                      const std::stop_token& stop) const {
  return CallUnary<Service>(connection_, stop, &Stub::LoadModel, request);
}

absl::StatusOr<wan::v1::Model> ModelClient::UnloadModel(const wan::v1::UnloadModelRequest& request,
                                                        const std::stop_token& stop) const {
  return CallUnary<Service>(connection_, stop, &Stub::UnloadModel, request);
}

absl::StatusOr<wan::v1::Model> ModelClient::WarmupModel(const wan::v1::WarmupModelRequest& request,
                                                        const std::stop_token& stop) const {
  return CallUnary<Service>(connection_, stop, &Stub::WarmupModel, request);
}

}  // namespace wan::client
