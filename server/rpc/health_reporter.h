// Decides whether the server is healthy, and why it is not, for grpc.health.v1 and /readyz.
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

  // Calls `publish` at once and after every change of a model or of the server, one call at a time,
  // until Stop has returned. If `reasons` is empty, the server is SERVING. Call Start once.
  using Publish = std::function<void(const NotServingReasons& reasons)>;
  void Start(Publish publish);

  // Publishes the reason STOPPING, and nothing after that. Does nothing if Start was not called.
  void Stop();

  // Returns the current reasons why the server as a whole is not serving.
  NotServingReasons Reasons() const;
  // Returns the reasons that keep callers from using even a READY model; states of models are not
  // among them. The reporter also calls `publish` when these reasons change.
  NotServingReasons ServerReasons() const;
  // Returns the reasons for the health of one model; `state` is its state in the model table.
  NotServingReasons ReasonsOfModel(std::string_view name, wan::v1::ModelState state) const;

  // Sets whether the server accepts new connections; true at first.
  void SetAccepting(bool accepting);

  void OnModelState(const wan::v1::Model& model) override;
  void OnDeviceLost(DeviceLoss cause, const absl::Status& problem) override;
  void OnStorage(const absl::Status& status) override;
  void OnDiskRoom(const absl::Status& status) override;
  void OnDraining() override;
  void OnUndrained() override;

 private:
  // The reporter's knowledge about a model.
  struct ModelView {
    wan::v1::ModelState state = wan::v1::MODEL_STATE_UNLOADED;
    bool awaited = false;  // whether the model is configured and its first load has not ended
    std::string error;
  };

  void AddServerReasons(NotServingReasons& reasons) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddModelReasons(NotServingReasons& reasons) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  NotServingReasons AllReasons() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Tell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::set<std::string> configured_;
  mutable absl::Mutex mutex_;
  // The key is the model's bare name.
  std::map<std::string, ModelView> models_ ABSL_GUARDED_BY(mutex_);
  bool accepting_ ABSL_GUARDED_BY(mutex_) = true;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  // The error by which the device was lost; OK if the device works.
  absl::Status device_ ABSL_GUARDED_BY(mutex_);
  // Why the data folder refuses writes; OK if the folder takes writes.
  absl::Status storage_ ABSL_GUARDED_BY(mutex_);
  // How much disk space is missing; OK if there is enough.
  absl::Status room_ ABSL_GUARDED_BY(mutex_);
  Publish publish_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
