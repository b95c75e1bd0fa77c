// grpc.health.v1.Health.
//
// gRPC 1.51's own service is not used: a call of it passes by the gatekeeper.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace grpc {
class Service;
}

namespace wan::server {

class Admission;
class Gatekeeper;
class WorkerPool;

// Returns NAME of "wan.v1.VideoGeneration/models/NAME", the name under which a model has a health
// of its own; nothing for any other text.
std::optional<std::string_view> ModelOfHealthName(std::string_view service);

// What health says of each service. Thread-safe.
class HealthStatuses {
 public:
  // The service is known from here on; "" is the whole server.
  void Set(const std::string& service, bool serving);

  // Get asks `others` about services that Set has not named; call it before the first Get. `others`
  // is called with no lock held, from any thread, and must be quick. Call Changed when it may
  // answer otherwise than before.
  void AskAbout(std::function<std::optional<bool>(const std::string& service)> others);
  // May be called with locks held that `others` takes.
  void Changed();

  // Nothing for a service that is not known.
  std::optional<bool> Get(const std::string& service) const;

  // Calls `changed` after every change, on the thread of Set or Changed, until Unwatch with the
  // returned key; a call that has begun may still run when Unwatch returns. `changed` must be
  // quick, and must not call Get.
  int64_t Watch(std::function<void()> changed);
  void Unwatch(int64_t key);

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, bool> serving_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, std::function<void()>> watchers_ ABSL_GUARDED_BY(mutex_);
  std::function<std::optional<bool>(const std::string&)> others_;
  int64_t last_key_ ABSL_GUARDED_BY(mutex_) = 0;
};

// All must outlive the service.
std::unique_ptr<grpc::Service> MakeHealthService(HealthStatuses& statuses,
                                                 const Gatekeeper& gatekeeper, Admission& admission,
                                                 WorkerPool& pool);

}  // namespace wan::server
