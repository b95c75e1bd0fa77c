#include "client/model_client.h"

#include "client/calls.h"
#include "wan/v1/model_management.grpc.pb.h"

namespace wan::client {

using Service = wan::v1::ModelManagement;
using Stub = Service::StubInterface;

ModelClient::ModelClient(const Connection& connection) : connection_(connection) {}

absl::StatusOr<wan::v1::ListModelsResponse> ModelClient::ListModels(
    const std::stop_token& stop) const {
  // The largest page that the server returns.
  constexpr int kPageSize = 1000;
  wan::v1::ListModelsRequest request;
  request.set_page_size(kPageSize);
  wan::v1::ListModelsResponse all;
  do {
    absl::StatusOr<wan::v1::ListModelsResponse> page =
        CallUnary<Service>(connection_, stop, &Stub::ListModels, request);
    if (!page.ok()) return page.status();
    request.set_page_token(page->next_page_token());
    page->clear_next_page_token();
    all.MergeFrom(*page);
  } while (!request.page_token().empty());
  return all;
}

absl::StatusOr<wan::v1::Model> ModelClient::GetModel(const std::string& name,
                                                     const std::stop_token& stop) const {
  wan::v1::GetModelRequest request;
  request.set_name(name);
  return CallUnary<Service>(connection_, stop, &Stub::GetModel, request);
}

absl::Status ModelClient::WatchModel(const wan::v1::WatchModelRequest& request,
                                     const std::function<void(const wan::v1::Model&)>& on_model,
                                     const std::stop_token& stop) const {
  return CallStream<Service, wan::v1::WatchModelResponse>(
      connection_, stop,
      [&](Stub& stub, grpc::ClientContext* context) { return stub.WatchModel(context, request); },
      [&](const wan::v1::WatchModelResponse& response) {
        if (response.has_model()) on_model(response.model());
        return absl::OkStatus();
      });
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
