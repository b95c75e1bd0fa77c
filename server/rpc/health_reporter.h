// Decides what grpc.health.v1 answers.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/watch/listener.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

// SERVING while the loading of every configured model has ended, one way or the other, at least one
// model is READY, and new connections are accepted; NOT_SERVING before, between, after the device
// is lost, while and after the server is drained, and from Stop on. Thread-safe.
class HealthReporter final : public StateListener {
 public:
  // `configured` are bare names.
  explicit HealthReporter(const std::vector<std::string>& configured);

  // Calls `publish` now and at every change of a model or of the server, one call at a time, until
  // Stop has returned. Called once.
  void Start(std::function<void(bool serving)> publish);

  // Publishes NOT_SERVING for good. Without effect before Start.
  void Stop();

  // Whether a model that is READY can be used now: the server is not being stopped or drained, has
  // its device, accepts connections, and its storage takes writes. Other models do not count.
  // `publish` is called whenever this changes, too.
  bool CanServe();

  // Whether new connections are accepted; they are until this says otherwise.
  void SetAccepting(bool accepting);

  void OnModelState(const wan::v1::Model& model) override;
  void OnDeviceLost(DeviceLoss cause, const absl::Status& problem) override;
  void OnStorage(const absl::Status& status) override;
  void OnDraining() override;

 private:
  bool Serving() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Usable() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Publish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::set<std::string> loading_ ABSL_GUARDED_BY(mutex_);  // configured, and not ended
  std::set<std::string> ready_ ABSL_GUARDED_BY(mutex_);
  bool accepting_ ABSL_GUARDED_BY(mutex_) = true;
  bool device_lost_ ABSL_GUARDED_BY(mutex_) = false;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool storage_writable_ ABSL_GUARDED_BY(mutex_) = true;
  std::function<void(bool)> publish_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
