// wan.v1.ModelManagement: lists, loads, unloads and warms up the server's models. Blocking,
// threads, stopping and errors are as in VideoClient; nothing is tried again.
#pragma once

#include <functional>
#include <stop_token>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/connection.h"
#include "wan/v1/model_management.pb.h"

namespace wan::client {

class ModelClient {
 public:
  // `connection` must outlive this object.
  explicit ModelClient(const Connection& connection);

  // All models, however many pages they take.
  absl::StatusOr<wan::v1::ListModelsResponse> ListModels(const std::stop_token& stop = {}) const;

  // `name` is "models/NAME" or the bare name.
  absl::StatusOr<wan::v1::Model> GetModel(const std::string& name,
                                          const std::stop_token& stop = {}) const;

  // Passes on the model as it is, and again whenever it has changed; heartbeats are left out. Ends
  // with OK once request.operation has ended, with CANCELLED when `stop` is requested.
  absl::Status WatchModel(const wan::v1::WatchModelRequest& request,
                          const std::function<void(const wan::v1::Model&)>& on_model,
                          const std::stop_token& stop = {}) const;

  // With request.wait, LoadModel and WarmupModel return when the server has done the work, which
  // may take minutes; otherwise at once.
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
