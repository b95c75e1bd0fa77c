#include "server/rpc/health_service.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/calls/server_description.h"
#include "server/conversion/message_texts.h"
#include "server/rpc/call_service.h"
#include "server/rpc/stream.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr char kName[] = "grpc.health.v1.Health";

HealthCheckResponse::ServingStatus StatusOf(const std::optional<NotServingReasons>& reasons) {
  if (!reasons.has_value()) return HealthCheckResponse::SERVICE_UNKNOWN;
  return reasons->empty() ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

absl::Status UnknownServiceError(const std::string& service) {
  return absl::NotFoundError(
      absl::StrCat("there is no service '", service,
                   "'; leave the name empty for the whole server, or ask for 'liveness', "
                   "'wan.v1.VideoGeneration' or 'wan.v1.VideoGeneration/models/NAME'"));
}

// Returns the value of kNotServingMetadata. Only the first reasons and the beginning of each
// message are included, because clients accept only 8 KiB of metadata.
std::string MetadataOf(const NotServingReasons& reasons) {
  constexpr size_t kMostMessageBytes = 500;
  constexpr int kMostReasons = 8;
  wan::v1::ServerInfo info;
  AddTo(reasons, info);
  auto& added = *info.mutable_not_serving_reasons();
  while (added.size() > kMostReasons) added.RemoveLast();
  for (wan::v1::NotServingReason& reason : added) {
    reason.set_message(Shortened(reason.message(), kMostMessageBytes));
  }
  return info.SerializeAsString();
}

// Sends the caller a service's status at once and whenever it changes.
class HealthStream final : public Stream<HealthCheckResponse> {
 public:
  HealthStream(std::string service, HealthStatuses& statuses, WorkerPool& pool)
      : Stream(pool), service_(std::move(service)), statuses_(statuses) {}
  ~HealthStream() override {
    if (key_ != 0) statuses_.Unwatch(key_);
  }

 private:
  Next Produce(HealthCheckResponse* response, absl::Status* /*status*/) override {
    if (key_ == 0) {
      // Capture a weak pointer, so that the statuses do not keep the stream alive after its call.
      key_ = statuses_.Watch([weak = weak_from_this()] {
        if (const auto stream = weak.lock()) stream->Wake();
      });
    }
    const HealthCheckResponse::ServingStatus now = StatusOf(statuses_.Get(service_));
    if (sent_ == now) return Next::kPending;
    sent_ = now;
    response->set_status(now);
    return Next::kMessage;
  }

  const std::string service_;
  HealthStatuses& statuses_;
  int64_t key_ = 0;
  std::optional<HealthCheckResponse::ServingStatus> sent_;
};

class HealthService final : public CallService {
 public:
  HealthService(const ServiceShared& shared, HealthStatuses& statuses)
      : CallService(kName, shared) {
    AddUnaryLater<HealthCheckRequest, HealthCheckResponse>(
        "Check", [this, &statuses](grpc::CallbackServerContext& context, const auto& admitted,
                                   Reply<HealthCheckResponse> reply) {
          this->PostWork(context, admitted.call,
                         [&context, &statuses, reply,
                          service = admitted.message.service()](const absl::Status& turn) {
                           if (!turn.ok()) return reply(turn);
                           const std::optional<NotServingReasons> reasons = statuses.Get(service);
                           if (!reasons.has_value()) return reply(UnknownServiceError(service));
                           if (!reasons->empty()) {
                             context.AddTrailingMetadata(kNotServingMetadata, MetadataOf(*reasons));
                           }
                           HealthCheckResponse response;
                           response.set_status(StatusOf(reasons));
                           reply(std::move(response));
                         });
        });
    AddStream<HealthCheckRequest, HealthCheckResponse>(
        "Watch", [this, &statuses](grpc::CallbackServerContext& /*context*/, const auto& admitted) {
          return std::make_shared<HealthStream>(admitted.message.service(), statuses,
                                                this->shared().pool);
        });
  }
};

}  // namespace

std::optional<std::string_view> ModelOfHealthName(std::string_view service) {
  constexpr std::string_view kPrefix = "wan.v1.VideoGeneration/models/";
  if (!service.starts_with(kPrefix)) return std::nullopt;
  service.remove_prefix(kPrefix.size());
  if (service.empty() || service.find('/') != service.npos) return std::nullopt;
  return service;
}

void HealthStatuses::Set(const std::string& service, const NotServingReasons& reasons) {
  {
    absl::MutexLock lock(&mutex_);
    reasons_[service] = reasons;
  }
  Changed();
}

void HealthStatuses::AskAbout(Others others) { others_ = std::move(others); }

void HealthStatuses::Changed() {
  std::map<int64_t, std::function<void()>> watchers;
  {
    absl::MutexLock lock(&mutex_);
    watchers = watchers_;
  }
  for (const auto& [key, changed] : watchers) changed();
}

std::optional<NotServingReasons> HealthStatuses::Get(const std::string& service) const {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = reasons_.find(service);
    if (found != reasons_.end()) return found->second;
  }
  return others_ == nullptr ? std::nullopt : others_(service);
}

int64_t HealthStatuses::Watch(std::function<void()> changed) {
  absl::MutexLock lock(&mutex_);
  watchers_[++last_key_] = std::move(changed);
  return last_key_;
}

void HealthStatuses::Unwatch(int64_t key) {
  absl::MutexLock lock(&mutex_);
  watchers_.erase(key);
}

std::unique_ptr<grpc::Service> MakeHealthService(const ServiceShared& shared,
                                                 HealthStatuses& statuses) {
  return std::make_unique<HealthService>(shared, statuses);
}

}  // namespace wan::server
