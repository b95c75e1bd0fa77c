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
#include "server/rpc/service_shared.h"
#include "server/watch/not_serving.h"

namespace grpc {
class Service;
}

namespace wan::v1 {
class ServerInfo;
}

namespace wan::server {

// Returns NAME of "wan.v1.VideoGeneration/models/NAME", the name under which a model has a health
// of its own; nothing for any other text.
std::optional<std::string_view> ModelOfHealthName(std::string_view service);

// The key of the trailing metadata with which Check says why a service is NOT_SERVING: the bytes of
// a wan.v1.ServerInfo that has `not_serving_reasons` alone. Every caller of the health check may
// see them; /readyz shows the same.
inline constexpr char kNotServingMetadata[] = "wan-not-serving-bin";

// Adds the reasons to what GetServerInfo answers.
void AddTo(const NotServingReasons& reasons, wan::v1::ServerInfo& info);

// The health status of each service, with its reasons. Thread-safe.
class HealthStatuses {
 public:
  // The service is known from here on; "" is the whole server. Without reasons it is SERVING.
  void Set(const std::string& service, const NotServingReasons& reasons);

  // Get asks `others` about services that Set has not named; call it before the first Get. `others`
  // is called with no lock held, from any thread, and must be quick. Call Changed when it may
  // answer otherwise than before.
  using Others = std::function<std::optional<NotServingReasons>(const std::string& service)>;
  void AskAbout(Others others);
  // May be called with locks held that `others` takes.
  void Changed();

  // Nothing for a service that is not known; no reasons: SERVING.
  std::optional<NotServingReasons> Get(const std::string& service) const;

  // Calls `changed` after every change, on the thread of Set or Changed, until Unwatch with the
  // returned key; a call that has begun may still run when Unwatch returns. `changed` must be
  // quick, and must not call Get.
  int64_t Watch(std::function<void()> changed);
  void Unwatch(int64_t key);

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, NotServingReasons> reasons_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, std::function<void()>> watchers_ ABSL_GUARDED_BY(mutex_);
  Others others_;
  int64_t last_key_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The statuses must outlive the service.
std::unique_ptr<grpc::Service> MakeHealthService(const ServiceShared& shared,
                                                 HealthStatuses& statuses);

}  // namespace wan::server
