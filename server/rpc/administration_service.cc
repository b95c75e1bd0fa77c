#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/jobs/job_service.h"
#include "server/rpc/call_service.h"
#include "server/rpc/services.h"
#include "wan/v1/administration.grpc.pb.h"

namespace wan::server {
namespace {

// The setting shutdown_grace_seconds also has this limit.
constexpr absl::Duration kLongestTimeout = absl::Hours(24);

class AdministrationService final : public CallService {
 public:
  AdministrationService(const ServiceShared& shared, std::function<StopSettings()> stop,
                        JobService& jobs)
      : CallService(wan::v1::Administration::service_full_name(), shared),
        stop_(std::move(stop)),
        jobs_(jobs) {
    AddUnaryLater<wan::v1::DrainRequest, wan::v1::DrainResponse>(
        "Drain", [this](grpc::CallbackServerContext& context, const auto& admitted,
                        Reply<wan::v1::DrainResponse> reply) {
          const absl::StatusOr<absl::Duration> timeout = TimeoutOf(admitted.message);
          if (!timeout.ok()) return reply(timeout.status());
          // Post the work, because it writes to the disk and gRPC's threads must not block.
          this->PostWork(
              context, admitted.call,
              [this, reply, timeout = *timeout, call = admitted.call](const absl::Status& turn) {
                if (!turn.ok()) return reply(turn);
                jobs_.Drain(stop_().mode, timeout,
                            [=](const absl::StatusOr<wan::v1::DrainResponse>& outcome) {
                              if (outcome.ok()) call->About(outcome->job());
                              reply(outcome);
                            });
              });
        });
    AddUnaryAsync<wan::v1::UndrainRequest, wan::v1::UndrainResponse>(
        "Undrain", [this](UnaryWork<wan::v1::UndrainRequest, wan::v1::UndrainResponse> work) {
          jobs_.Undrain(std::move(work.done));
        });
  }

 private:
  absl::StatusOr<absl::Duration> TimeoutOf(const wan::v1::DrainRequest& request) const {
    if (!request.has_timeout()) return stop_().grace;
    const absl::Duration timeout =
        absl::Seconds(request.timeout().seconds()) + absl::Nanoseconds(request.timeout().nanos());
    if (timeout >= absl::ZeroDuration() && timeout <= kLongestTimeout) return timeout;
    return InvalidFields(
        {{"timeout", absl::StrCat("is ", absl::FormatDuration(timeout), "; must be 0 to ",
                                  absl::FormatDuration(kLongestTimeout))}});
  }

  const std::function<StopSettings()> stop_;
  JobService& jobs_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdministrationService(const ServiceShared& shared,
                                                         std::function<StopSettings()> stop,
                                                         JobService& jobs) {
  return std::make_unique<AdministrationService>(shared, std::move(stop), jobs);
}

}  // namespace wan::server
