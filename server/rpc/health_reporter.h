// Decides the answers of grpc.health.v1 and their reasons: the only place that knows whether the
// server takes jobs.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/watch/listener.h"
#include "server/watch/not_serving.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

// SERVING while no reason holds: the loading of every configured model has ended, one way or the
// other, at least one model is READY, new connections are accepted, the data folder takes writes
// and has the room that it should, the device works, and the server is neither drained nor stopped.
// Thread-safe.
class HealthReporter final : public StateListener {
 public:
  // `configured` are bare names.
  explicit HealthReporter(const std::vector<std::string>& configured);

  // Calls `publish` now and at every change of a model or of the server, one call at a time, until
  // Stop has returned. No reasons: SERVING. Called once.
  using Publish = std::function<void(const NotServingReasons& reasons)>;
  void Start(Publish publish);

  // Publishes STOPPING for good. Without effect before Start.
  void Stop();

  // The reasons that hold now for the whole server.
  NotServingReasons Reasons() const;
  // The reasons among them that keep a READY model from being used; other models do not count.
  // `publish` is called also when these change.
  NotServingReasons ServerReasons() const;
  // The reasons of one model's own health; `state` is its state in the model table.
  NotServingReasons ReasonsOfModel(std::string_view name, wan::v1::ModelState state) const;

  // Whether new connections are accepted; they are until this says otherwise.
  void SetAccepting(bool accepting);

  void OnModelState(const wan::v1::Model& model) override;
  void OnDeviceLost(DeviceLoss cause, const absl::Status& problem) override;
  void OnStorage(const absl::Status& status) override;
  void OnDiskRoom(const absl::Status& status) override;
  void OnDraining() override;
  void OnUndrained() override;

 private:
  // The known state of a model.
  struct ModelView {
    wan::v1::ModelState state = wan::v1::MODEL_STATE_UNLOADED;
    bool awaited = false;  // configured, and its first loading has not ended
    std::string error;
  };

  void AddServerReasons(NotServingReasons& reasons) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddModelReasons(NotServingReasons& reasons) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  NotServingReasons AllReasons() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::set<std::string> configured_;
  mutable absl::Mutex mutex_;
  std::map<std::string, ModelView> models_ ABSL_GUARDED_BY(mutex_);  // by bare name
  bool accepting_ ABSL_GUARDED_BY(mutex_) = true;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status device_ ABSL_GUARDED_BY(mutex_);   // not OK: why it is lost
  absl::Status storage_ ABSL_GUARDED_BY(mutex_);  // not OK: why writes are refused
  absl::Status room_ ABSL_GUARDED_BY(mutex_);     // not OK: how much is missing
  Publish publish_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
