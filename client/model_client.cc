#include "client/model_client.h"

#include <utility>

#include "client/calls.h"
#include "wan/v1/model_management.grpc.pb.h"

namespace wan::client {

using Service = wan::v1::ModelManagement::StubInterface;

struct ModelClient::Stub {
  std::unique_ptr<Service> service;
};

ModelClient::ModelClient(const Connection& connection)
    : connection_(connection),
      stub_(new Stub{wan::v1::ModelManagement::NewStub(connection.channel())}) {}

ModelClient::~ModelClient() = default;

absl::StatusOr<wan::v1::ListModelsResponse> ModelClient::ListModels(
    const std::stop_token& stop) const {
  return CallUnary(connection_, stop, *stub_->service, &Service::ListModels,
                   wan::v1::ListModelsRequest());
}

absl::StatusOr<wan::v1::Model> ModelClient::LoadModel(const wan::v1::LoadModelRequest& request,
                                                      const std::stop_token& stop) const {
  return CallUnary(connection_, stop, *stub_->service, &Service::LoadModel, request);
}

absl::StatusOr<wan::v1::Model> ModelClient::UnloadModel(const wan::v1::UnloadModelRequest& request,
                                                        const std::stop_token& stop) const {
  return CallUnary(connection_, stop, *stub_->service, &Service::UnloadModel, request);
}

absl::StatusOr<wan::v1::Model> ModelClient::WarmupModel(const wan::v1::WarmupModelRequest& request,
                                                        const std::stop_token& stop) const {
  return CallUnary(connection_, stop, *stub_->service, &Service::WarmupModel, request);
}

}  // namespace wan::client
