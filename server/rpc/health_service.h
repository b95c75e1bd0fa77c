// Implements grpc.health.v1.Health.
//
// This service replaces that of gRPC 1.51, whose calls bypass the gatekeeper.
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
#include "server/rpc/service_shared.h"
#include "server/watch/not_serving.h"

namespace grpc {
class Service;
}

namespace wan::v1 {
class ServerInfo;
}

namespace wan::server {

// Returns NAME if `service` is "wan.v1.VideoGeneration/models/NAME", which stands for one model's
// health; otherwise nothing.
std::optional<std::string_view> ModelOfHealthName(std::string_view service);

// Name of the trailing metadata in which Check says why a service is NOT_SERVING: a serialized
// wan.v1.ServerInfo that has only `not_serving_reasons`. Every caller may see these reasons, which
// /readyz shows too.
inline constexpr char kNotServingMetadata[] = "wan-not-serving-bin";

// The health status of each service, with the reasons for NOT_SERVING. Thread-safe.
class HealthStatuses {
 public:
  // Sets the status of a service, which callers can ask for from then on; "" is the whole server.
  // If `reasons` is empty, the service is SERVING.
  void Set(const std::string& service, const NotServingReasons& reasons);

  // Sets a function that Get asks about services that Set has not named; call AskAbout before the
  // first Get. The function is called on any thread with no lock held, and must be quick. Call
  // Changed when its results may have changed.
  using Others = std::function<std::optional<NotServingReasons>(const std::string& service)>;
  void AskAbout(Others others);
  // Tells the watchers that results of `others` may have changed. The calling code may hold locks
  // that `others` takes.
  void Changed();

  // Returns the reasons why the service is not serving: nullopt for an unknown service, an empty
  // list for a service that is SERVING.
  std::optional<NotServingReasons> Get(const std::string& service) const;

  // Calls `changed` after every change, on the thread of Set or Changed, until Unwatch with the
  // returned key; a call that has begun may still be running when Unwatch returns. `changed` must
  // be quick, and must not call Get.
  int64_t Watch(std::function<void()> changed);
  void Unwatch(int64_t key);

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, NotServingReasons> reasons_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, std::function<void()>> watchers_ ABSL_GUARDED_BY(mutex_);
  Others others_;
  int64_t last_key_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Makes the gRPC service; the statuses must outlive it.
std::unique_ptr<grpc::Service> MakeHealthService(const ServiceShared& shared,
                                                 HealthStatuses& statuses);

}  // namespace wan::server
