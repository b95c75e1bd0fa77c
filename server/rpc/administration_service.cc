#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/convert.h"
#include "server/jobs/job_service.h"
#include "server/rpc/call_service.h"
#include "server/rpc/services.h"
#include "wan/v1/administration.grpc.pb.h"

namespace wan::server {
namespace {

// As of the setting shutdown_grace_seconds.
constexpr absl::Duration kLongestTimeout = absl::Hours(24);

class AdministrationService final : public CallService {
 public:
  AdministrationService(std::function<StopSettings()> stop, JobService& jobs,
                        const Gatekeeper& gatekeeper, Admission& admission, WorkerPool& pool)
      : CallService(wan::v1::Administration::service_full_name(), gatekeeper, admission, pool),
        stop_(std::move(stop)),
        jobs_(jobs) {
    AddUnaryLater<wan::v1::DrainRequest, wan::v1::DrainResponse>(
        "Drain", [this](grpc::CallbackServerContext& context, const auto& admitted,
                        wan::v1::DrainResponse* response) {
          grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
          const absl::StatusOr<absl::Duration> timeout = TimeoutOf(admitted.message);
          if (!timeout.ok()) {
            reactor->Finish(ToGrpcStatus(admitted.call->End(timeout.status())));
            return reactor;
          }
          // The disk is asked to write, for which gRPC's threads are not.
          this->PostWork(context, *admitted.call,
                         [this, reactor, response, timeout = *timeout,
                          call = admitted.call](const absl::Status& turn) {
                           if (!turn.ok()) {
                             reactor->Finish(ToGrpcStatus(call->End(turn)));
                             return;
                           }
                           jobs_.Drain(stop_().mode, timeout,
                                       [=](const absl::StatusOr<wan::v1::DrainResponse>& outcome) {
                                         if (outcome.ok()) {
                                           *response = *outcome;
                                           call->About(outcome->job());
                                         }
                                         reactor->Finish(ToGrpcStatus(call->End(outcome.status())));
                                       });
                         });
          return reactor;
        });
    AddUnary<wan::v1::UndrainRequest, wan::v1::UndrainResponse>(
        "Undrain", [this](const wan::v1::UndrainRequest& /*request*/) { return jobs_.Undrain(); });
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

std::unique_ptr<grpc::Service> MakeAdministrationService(std::function<StopSettings()> stop,
                                                         JobService& jobs,
                                                         const Gatekeeper& gatekeeper,
                                                         Admission& admission, WorkerPool& pool) {
  return std::make_unique<AdministrationService>(std::move(stop), jobs, gatekeeper, admission,
                                                 pool);
}

}  // namespace wan::server
