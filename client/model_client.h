// wan.v1.ModelManagement: lists, loads, unloads and warms up the server's models. Blocking,
// threads, stopping and errors are as in VideoClient; nothing is tried again.
#pragma once

#include <stop_token>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "wan/v1/model_management.pb.h"

namespace wan::client {

class ModelClient {
 public:
  // `connection` must outlive this object.
  explicit ModelClient(const Connection& connection);

  absl::StatusOr<wan::v1::ListModelsResponse> ListModels(const std::stop_token& stop = {}) const;

  // These return when the server has done the work, which may take minutes.
  absl::StatusOr<wan::v1::Model> LoadModel(const wan::v1::LoadModelRequest& request,
                                           const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::Model> UnloadModel(const wan::v1::UnloadModelRequest& request,
                                             const std::stop_token& stop = {}) const;
  absl::StatusOr<wan::v1::Model> WarmupModel(const wan::v1::WarmupModelRequest& request,
                                             const std::stop_token& stop = {}) const;

 private:
  const Connection& connection_;
};

}  // namespace wan::client
