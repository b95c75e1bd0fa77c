// The client for wan.v1.ModelManagement, which lists, loads, unloads and warms up models. As in
// VideoClient, every function blocks, may be called from several threads at once, and returns
// CANCELLED early when a stop is requested; client/error.h describes the errors. No call is
// retried.
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

  // Returns all models, by asking for page after page.
  absl::StatusOr<wan::v1::ListModelsResponse> ListModels(const std::stop_token& stop = {}) const;

  // `name` is "models/NAME" or the bare name.
  absl::StatusOr<wan::v1::Model> GetModel(const std::string& name,
                                          const std::stop_token& stop = {}) const;

  // Calls `on_model` on the calling thread with the model's current state and after every change,
  // but not for heartbeats. Returns OK when request.operation has ended.
  absl::Status WatchModel(const wan::v1::WatchModelRequest& request,
                          const std::function<void(const wan::v1::Model&)>& on_model,
                          const std::stop_token& stop = {}) const;

  // If request.wait is set, LoadModel and WarmupModel return when the server has done the work,
  // which may take minutes; otherwise they return at once.
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
