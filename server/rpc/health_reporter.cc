#include "server/rpc/health_reporter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/conversion/public_text.h"

namespace wan::server {
namespace {

std::string MessageOf(const absl::Status& status) {
  return WithoutFolders(std::string(status.message()));
}

}  // namespace

HealthReporter::HealthReporter(const std::vector<std::string>& configured)
    : configured_(configured.begin(), configured.end()) {
  for (const std::string& name : configured_) models_[name].awaited = true;
}

void HealthReporter::Start(Publish publish) {
  absl::MutexLock lock(&mutex_);
  publish_ = std::move(publish);
  Tell();
}

void HealthReporter::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  Tell();
  publish_ = nullptr;
}

NotServingReasons HealthReporter::Reasons() const {
  absl::MutexLock lock(&mutex_);
  return AllReasons();
}

NotServingReasons HealthReporter::ServerReasons() const {
  absl::MutexLock lock(&mutex_);
  NotServingReasons reasons;
  AddServerReasons(reasons);
  return reasons;
}

NotServingReasons HealthReporter::ReasonsOfModel(std::string_view name,
                                                 wan::v1::ModelState state) const {
  NotServingReasons reasons = ServerReasons();
  if (state == wan::v1::MODEL_STATE_READY) return reasons;
  const char* const is = state == wan::v1::MODEL_STATE_LOADING  ? "is being loaded"
                         : state == wan::v1::MODEL_STATE_FAILED ? "could not be loaded"
                                                                : "is not loaded";
  reasons.push_back(
      {std::string(kReasonModelNotReady), absl::StrCat("model '", std::string(name), "' ", is)});
  return reasons;
}

void HealthReporter::SetAccepting(bool accepting) {
  absl::MutexLock lock(&mutex_);
  accepting_ = accepting;
  Tell();
}

void HealthReporter::OnModelState(const wan::v1::Model& model) {
  const std::string name(BareModelName(model.name()));
  absl::MutexLock lock(&mutex_);
  ModelView& view = models_[name];
  view.state = model.state();
  view.error = WithoutFolders(model.error().message());
  const bool failed = model.state() == wan::v1::MODEL_STATE_FAILED;
  if (failed || model.state() == wan::v1::MODEL_STATE_READY) view.awaited = false;
  // Forget idle models that are not configured, because callers may name any number of them.
  const bool idle = failed || model.state() == wan::v1::MODEL_STATE_UNLOADED;
  if (idle && !configured_.contains(name)) models_.erase(name);
  Tell();
}

void HealthReporter::OnDeviceLost(DeviceLoss, const absl::Status& problem) {
  absl::MutexLock lock(&mutex_);
  device_ = problem.ok() ? absl::UnavailableError("its cause is not known") : problem;
  Tell();
}

void HealthReporter::OnStorage(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  storage_ = status;
  Tell();
}

void HealthReporter::OnDiskRoom(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  room_ = status;
  Tell();
}

void HealthReporter::OnDraining() {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
  Tell();
}

void HealthReporter::OnUndrained() {
  absl::MutexLock lock(&mutex_);
  draining_ = false;
  Tell();
}

void HealthReporter::AddServerReasons(NotServingReasons& reasons) const {
  if (stopped_) reasons.push_back({std::string(kNotServingStopping), "the server is stopping"});
  if (draining_) {
    reasons.push_back({std::string(kNotServingDraining),
                       "the server is drained until 'wanctl undrain', or until its restart"});
  }
  if (!device_.ok()) {
    reasons.push_back({"DEVICE_LOST", absl::StrCat("the device no longer works, which a restart of "
                                                   "the server may mend (",
                                                   MessageOf(device_), ")")});
  }
  if (!storage_.ok()) {
    reasons.push_back({"STORAGE_UNAVAILABLE",
                       absl::StrCat("the storage takes no writes (", MessageOf(storage_), ")")});
  }
  if (!room_.ok()) reasons.push_back({"DISK_FULL", MessageOf(room_)});
  if (!accepting_) {
    reasons.push_back({"CONNECTIONS_FULL",
                       "no new connection is accepted until others are closed (max_connections, or "
                       "the limit of file descriptors)"});
  }
}

void HealthReporter::AddModelReasons(NotServingReasons& reasons) const {
  const bool ready = std::any_of(models_.begin(), models_.end(), [](const auto& model) {
    return model.second.state == wan::v1::MODEL_STATE_READY;
  });
  bool named = false;
  for (const auto& [name, view] : models_) {
    const bool loading = view.state == wan::v1::MODEL_STATE_LOADING;
    if (view.awaited || (loading && !ready)) {
      named = true;
      reasons.push_back({std::string(kNotServingLoading),
                         absl::StrCat("model '", name, "' ",
                                      loading ? "is being loaded" : "waits to be loaded")});
    } else if (view.state == wan::v1::MODEL_STATE_FAILED && !ready) {
      named = true;
      reasons.push_back(
          {"MODEL_FAILED", absl::StrCat("model '", name, "' could not be loaded (", view.error,
                                        "); try again with 'wanctl models load ", name, "'")});
    }
  }
  if (!ready && !named) {
    reasons.push_back({"NO_MODEL", "no model is loaded; load one with 'wanctl models load'"});
  }
}

NotServingReasons HealthReporter::AllReasons() const {
  NotServingReasons reasons;
  AddServerReasons(reasons);
  AddModelReasons(reasons);
  return reasons;
}

void HealthReporter::Tell() {
  if (publish_) publish_(AllReasons());
}

}  // namespace wan::server
