#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "google/protobuf/empty.pb.h"
#include "server/calls/admission.h"
#include "server/jobs/job_service.h"
#include "server/rpc/call_service.h"
#include "server/rpc/download_stream.h"
#include "server/rpc/event_streams.h"
#include "server/rpc/services.h"
#include "wan/v1/video_generation.grpc.pb.h"

namespace wan::server {
namespace {

class VideoGenerationService final : public CallService {
 public:
  // The function has one statement for each RPC. NOLINTNEXTLINE(readability-function-size)
  VideoGenerationService(const ServiceShared& shared, JobService& jobs)
      : CallService(wan::v1::VideoGeneration::service_full_name(), shared),
        jobs_(jobs),
        download_{jobs, shared.admission, shared.pool},
        events_{jobs, heartbeat(), shared.pool} {
    AddStream<wan::v1::GenerateRequest, wan::v1::Event>(
        "Generate", [this](grpc::CallbackServerContext& context, auto admitted) {
          return std::make_shared<GenerateStream>(context, std::move(admitted), events_);
        });
    AddUnaryAsync<wan::v1::CreateJobRequest, wan::v1::Job>(
        "CreateJob", [this](UnaryWork<wan::v1::CreateJobRequest, wan::v1::Job> work) {
          const wan::v1::GenerationRequest* const asked = &work.request->request();
          jobs_.Create({std::move(work.request), asked}, FactsOf(*work.call, work.decode),
                       work.post,
                       [done = std::move(work.done)](absl::StatusOr<JobService::Created> created) {
                         if (!created.ok()) return done(created.status());
                         done(std::move(created->job));
                       });
        });
    AddUnaryAsync<wan::v1::SubmitBatchRequest, wan::v1::SubmitBatchResponse>(
        "SubmitBatch",
        [this](UnaryWork<wan::v1::SubmitBatchRequest, wan::v1::SubmitBatchResponse> work) {
          jobs_.SubmitBatch(std::move(work.request), FactsOf(*work.call, work.decode), work.post,
                            std::move(work.done));
        });
    AddUnary<wan::v1::QuoteRequest, wan::v1::QuoteResponse>(
        "Quote", [this](const Call& call, const wan::v1::QuoteRequest& request) {
          return jobs_.Quote(request, {call.caller().name, call.ReadsAll()});
        });
    AddUnaryAsync<wan::v1::UpdateJobRequest, wan::v1::Job>(
        "UpdateJob", [this](UnaryWork<wan::v1::UpdateJobRequest, wan::v1::Job> work) {
          jobs_.Update(*work.request, work.post, std::move(work.done));
        });
    AddUnaryAsync<wan::v1::DeleteJobRequest, google::protobuf::Empty>(
        "DeleteJob", [this](UnaryWork<wan::v1::DeleteJobRequest, google::protobuf::Empty> work) {
          jobs_.Delete(work.request->name(), work.post, OrEmpty(std::move(work.done)));
        });
    AddUnaryAsync<wan::v1::DeleteArtifactRequest, google::protobuf::Empty>(
        "DeleteArtifact",
        [this](UnaryWork<wan::v1::DeleteArtifactRequest, google::protobuf::Empty> work) {
          jobs_.DeleteArtifact(work.request->name(), work.post, OrEmpty(std::move(work.done)));
        });
    AddUnary<wan::v1::GetJobRequest, wan::v1::Job>(
        "GetJob",
        [this](const wan::v1::GetJobRequest& request) { return jobs_.Get(request.name()); });
    AddUnaryInSteps<wan::v1::ListJobsRequest, wan::v1::ListJobsResponse, JobListing>(
        "ListJobs", [this](const Call& call, const wan::v1::ListJobsRequest& request) {
          return jobs_.BeginList(request, call.VisibleOwner());
        });
    AddUnaryAsync<wan::v1::CancelJobRequest, wan::v1::Job>(
        "CancelJob", [this](UnaryWork<wan::v1::CancelJobRequest, wan::v1::Job> work) {
          jobs_.Cancel(work.request->name(), "CancelJob", std::move(work.done));
        });
    AddStream<wan::v1::WatchJobRequest, wan::v1::Event>(
        "WatchJob", [this](grpc::CallbackServerContext& /*context*/, auto admitted) {
          return std::make_shared<WatchJobStream>(std::move(admitted.message), events_);
        });
    AddStream<wan::v1::DownloadArtifactRequest, wan::v1::DownloadArtifactResponse>(
        "DownloadArtifact", [this](grpc::CallbackServerContext& context, auto admitted) {
          return std::make_shared<DownloadStream>(context, std::move(admitted.message), download_);
        });
    AddUnary<wan::v1::GetReportRequest, wan::v1::JobReport>(
        "GetReport",
        [this](const wan::v1::GetReportRequest& request) { return jobs_.Report(request.job()); });
    AddUnary<wan::v1::GetReceiptRequest, wan::v1::Receipt>(
        "GetReceipt",
        [this](const wan::v1::GetReceiptRequest& request) { return jobs_.Receipt(request.job()); });
    AddUnary<wan::v1::GetUsageRequest, wan::v1::Usage>(
        "GetUsage",
        [this](const Call& call,
               const wan::v1::GetUsageRequest& request) -> absl::StatusOr<wan::v1::Usage> {
          const absl::StatusOr<std::string> principal = call.PrincipalOrSelf(request.principal());
          if (!principal.ok()) return principal.status();
          return jobs_.UsageOf(*principal);
        });
  }

 private:
  static JobService::CallerFacts FactsOf(const Call& call, const PostStep& decode) {
    return {/*tied=*/false, call.caller().name, call.trace(), decode, call.ReadsAll()};
  }

  static JobService::Done OrEmpty(
      std::function<void(absl::StatusOr<google::protobuf::Empty>)> done) {
    return [done = std::move(done)](const absl::Status& status) {
      status.ok() ? done(google::protobuf::Empty()) : done(status);
    };
  }

  JobService& jobs_;
  const DownloadStream::Shared download_;
  const EventStream::Shared events_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeVideoGenerationService(const ServiceShared& shared,
                                                          JobService& jobs) {
  return std::make_unique<VideoGenerationService>(shared, jobs);
}

}  // namespace wan::server
