// The answers of ModelOperations, for tests that wait for them.
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "server/jobs/model_operations.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

// The answer to a call with a `done`, waited for when it is read.
class ModelAnswer {
 public:
  ModelOperations::Done Take() {
    return [shared = shared_](absl::StatusOr<wan::v1::Model> model) {
      shared->model = std::move(model);
      shared->done.Notify();
    };
  }
  absl::StatusOr<wan::v1::Model> Wait() {
    shared_->done.WaitForNotification();
    return shared_->model;
  }
  bool there() const { return shared_->done.HasBeenNotified(); }

 private:
  struct Shared {
    absl::Notification done;
    absl::StatusOr<wan::v1::Model> model;
  };
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace wan::server
