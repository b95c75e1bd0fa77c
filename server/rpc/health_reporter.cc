#include "server/rpc/health_reporter.h"

#include <utility>

#include "server/conversion/names.h"

namespace wan::server {

HealthReporter::HealthReporter(const std::vector<std::string>& configured)
    : loading_(configured.begin(), configured.end()) {}

void HealthReporter::Start(std::function<void(bool serving)> publish) {
  absl::MutexLock lock(&mutex_);
  publish_ = std::move(publish);
  Publish();
}

void HealthReporter::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  Publish();
  publish_ = nullptr;
}

void HealthReporter::SetAccepting(bool accepting) {
  absl::MutexLock lock(&mutex_);
  accepting_ = accepting;
  Publish();
}

void HealthReporter::OnModelState(const wan::v1::Model& model) {
  const std::string name(BareModelName(model.name()));
  absl::MutexLock lock(&mutex_);
  switch (model.state()) {
    case wan::v1::MODEL_STATE_READY:
      loading_.erase(name);
      ready_.insert(name);
      break;
    case wan::v1::MODEL_STATE_FAILED:
      loading_.erase(name);
      ready_.erase(name);
      break;
    default:
      ready_.erase(name);
  }
  Publish();
}

void HealthReporter::OnDeviceLost(DeviceLoss, const absl::Status&) {
  absl::MutexLock lock(&mutex_);
  device_lost_ = true;
  Publish();
}

void HealthReporter::OnStorage(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  storage_writable_ = status.ok();
  Publish();
}

void HealthReporter::OnDraining() {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
  Publish();
}

bool HealthReporter::CanServe() {
  absl::MutexLock lock(&mutex_);
  return Usable();
}

bool HealthReporter::Usable() const {
  return !stopped_ && !draining_ && !device_lost_ && accepting_ && storage_writable_;
}

bool HealthReporter::Serving() const { return Usable() && loading_.empty() && !ready_.empty(); }

void HealthReporter::Publish() {
  if (publish_) publish_(Serving());
}

}  // namespace wan::server
