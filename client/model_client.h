// wan.v1.ModelManagement: which models are resident. Functions behave as those of VideoClient.
#pragma once

#include <memory>
#include <stop_token>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "wan/v1/model_management.pb.h"

namespace wan::client {

class ModelClient {
 public:
  // `connection` must outlive it.
  explicit ModelClient(const Connection& connection);
  ~ModelClient();

  absl::StatusOr<wan::v1::ListModelsResponse> ListModels(const std::stop_token& stop = {}) const;

  // These answer when the work is done, which may take minutes.
  absl::StatusOr<wan::v1::Model> LoadModel(const wan::v1::LoadModelRequest& request,
                                           const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::Model> UnloadModel(const wan::v1::UnloadModelRequest& request,
                                             const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::Model> WarmupModel(const wan::v1::WarmupModelRequest& request,
                                             const std::stop_token& stop = {}) const;

 private:
  struct Stub;

  const Connection& connection_;
  const std::unique_ptr<Stub> stub_;
};

}  // namespace wan::client
