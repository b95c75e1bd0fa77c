// Decides whether the server is healthy, and why not, for grpc.health.v1 and /readyz.
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

// The server is SERVING if every configured model has been loaded or has failed, at least one model
// is READY, new connections are accepted, the data folder takes writes and has enough room, the
// device works, and the server is neither drained nor stopped. Thread-safe.
class HealthReporter final : public StateListener {
 public:
  // `configured` has the bare names of the models in the settings.
  explicit HealthReporter(const std::vector<std::string>& configured);

  // Calls `publish` now and after every change of a model or of the server, one call at a time,
  // until Stop has returned. Without reasons the server is SERVING. Call it once.
  using Publish = std::function<void(const NotServingReasons& reasons)>;
  void Start(Publish publish);

  // Publishes STOPPING, and nothing after that. Does nothing before Start.
  void Stop();

  // Returns the current reasons for the whole server.
  NotServingReasons Reasons() const;
  // Returns those reasons that keep even a READY model from being used; states of models are not
  // among them. `publish` is also called when these change.
  NotServingReasons ServerReasons() const;
  // The reasons of one model's own health; `state` is its state in the model table.
  NotServingReasons ReasonsOfModel(std::string_view name, wan::v1::ModelState state) const;

  // Sets whether new connections are accepted; initially they are.
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
    bool awaited = false;  // configured, and its first load has not ended
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
  absl::Status device_ ABSL_GUARDED_BY(mutex_);   // why it is lost, or OK
  absl::Status storage_ ABSL_GUARDED_BY(mutex_);  // why writes are refused, or OK
  absl::Status room_ ABSL_GUARDED_BY(mutex_);     // how much room is missing, or OK
  Publish publish_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
