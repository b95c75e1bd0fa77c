#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "google/protobuf/empty.pb.h"
#include "server/calls/admission.h"
#include "server/calls/wake_timer.h"
#include "server/jobs/job_service.h"
#include "server/rpc/call_service.h"
#include "server/rpc/event_streams.h"
#include "server/rpc/services.h"
#include "wan/v1/video_generation.grpc.pb.h"

namespace wan::server {
namespace {

// The contract allows 1 MiB. Smaller chunks bound what streams hold that nobody reads: each has one
// as a message and once more on its way.
constexpr size_t kChunkBytes = size_t{256} << 10;

class DownloadStream final : public Stream<wan::v1::DownloadArtifactResponse> {
 public:
  struct Shared {
    JobService& jobs;
    Admission& admission;
    WorkerPool& pool;
  };

  DownloadStream(const grpc::CallbackServerContext& context,
                 wan::v1::DownloadArtifactRequest request, const Shared& shared)
      : Stream(shared.pool), request_(std::move(request)), shared_(shared), peer_(context.peer()) {}

 private:
  Next Produce(wan::v1::DownloadArtifactResponse* chunk, absl::Status* status) override {
    const bool first = !reader_.has_value();
    if (first) {
      *status = Begin(chunk);
      if (!status->ok()) return Next::kEnd;
    }
    chunk->set_offset(reader_->offset());
    absl::StatusOr<std::string> data = reader_->Read(kChunkBytes);
    if (!data.ok()) {
      *status = data.status();
      return Next::kEnd;
    }
    chunk->set_data(*std::move(data));
    // The metadata is sent also when nothing is left to read.
    return first || !chunk->data().empty() ? Next::kMessage : Next::kEnd;
  }

  // Takes a place, and opens the file.
  absl::Status Begin(wan::v1::DownloadArtifactResponse* chunk) {
    auto place = shared_.admission.Download(call()->TakerOf(Front::kGrpc), peer_);
    if (!place.ok()) return place.status();
    place_ = *std::move(place);
    absl::StatusOr<JobService::OpenedArtifact> opened =
        shared_.jobs.OpenArtifact(request_.name(), request_.offset());
    if (!opened.ok()) return opened.status();
    reader_.emplace(std::move(opened->reader));
    *chunk->mutable_artifact() = std::move(opened->artifact);
    return absl::OkStatus();
  }

  const wan::v1::DownloadArtifactRequest request_;
  const Shared shared_;
  const std::string peer_;
  Admission::Lease place_;
  std::optional<ArtifactReader> reader_;
};

class VideoGenerationService final : public CallService {
 public:
  VideoGenerationService(JobService& jobs, Clock& clock, absl::Duration heartbeat_interval,
                         const Gatekeeper& gatekeeper, Admission& admission, WorkerPool& pool)
      : CallService(wan::v1::VideoGeneration::service_full_name(), gatekeeper, admission, pool),
        jobs_(jobs),
        timer_(clock),
        download_{jobs, admission, pool},
        events_{jobs, {clock, timer_, heartbeat_interval}, pool} {
    EndStalledCalls(clock, timer_);
    AddStream<wan::v1::GenerateRequest, wan::v1::Event>(
        "Generate", [this](grpc::CallbackServerContext& context, auto admitted) {
          return std::make_shared<GenerateStream>(context, std::move(admitted), events_);
        });
    AddUnary<wan::v1::CreateJobRequest, wan::v1::Job>(
        "CreateJob",
        [this](const Call& call,
               const wan::v1::CreateJobRequest& request) -> absl::StatusOr<wan::v1::Job> {
          absl::StatusOr<JobService::Created> created = jobs_.Create(
              request.request(), /*tied_to_caller=*/false, call.caller().name, call.trace());
          if (!created.ok()) return created.status();
          return std::move(created->job);
        });
    AddUnary<wan::v1::SubmitBatchRequest, wan::v1::SubmitBatchResponse>(
        "SubmitBatch", [this](const Call& call, const wan::v1::SubmitBatchRequest& request) {
          return jobs_.SubmitBatch(request, call.caller().name, call.trace());
        });
    AddUnary<wan::v1::QuoteRequest, wan::v1::QuoteResponse>(
        "Quote", [this](const Call& call, const wan::v1::QuoteRequest& request) {
          return jobs_.Quote(request, call.caller().name);
        });
    AddUnary<wan::v1::UpdateJobRequest, wan::v1::Job>(
        "UpdateJob",
        [this](const wan::v1::UpdateJobRequest& request) { return jobs_.Update(request); });
    AddUnary<wan::v1::DeleteJobRequest, google::protobuf::Empty>(
        "DeleteJob", [this](const wan::v1::DeleteJobRequest& request) {
          return OrEmpty(jobs_.Delete(request.name()));
        });
    AddUnary<wan::v1::DeleteArtifactRequest, google::protobuf::Empty>(
        "DeleteArtifact", [this](const wan::v1::DeleteArtifactRequest& request) {
          return OrEmpty(jobs_.DeleteArtifact(request.name()));
        });
    AddUnary<wan::v1::GetJobRequest, wan::v1::Job>(
        "GetJob",
        [this](const wan::v1::GetJobRequest& request) { return jobs_.Get(request.name()); });
    AddUnary<wan::v1::ListJobsRequest, wan::v1::ListJobsResponse>(
        "ListJobs", [this](const Call& call, const wan::v1::ListJobsRequest& request) {
          return jobs_.List(request, call.VisibleOwner());
        });
    AddUnary<wan::v1::CancelJobRequest, wan::v1::Job>(
        "CancelJob", [this](const wan::v1::CancelJobRequest& request) {
          return jobs_.Cancel(request.name(), "CancelJob");
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
  static absl::StatusOr<google::protobuf::Empty> OrEmpty(const absl::Status& status) {
    if (!status.ok()) return status;
    return google::protobuf::Empty();
  }

  JobService& jobs_;
  WakeTimer timer_;
  const DownloadStream::Shared download_;
  const EventStream::Shared events_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeVideoGenerationService(JobService& jobs, Clock& clock,
                                                          absl::Duration heartbeat_interval,
                                                          const Gatekeeper& gatekeeper,
                                                          Admission& admission, WorkerPool& pool) {
  return std::make_unique<VideoGenerationService>(jobs, clock, heartbeat_interval, gatekeeper,
                                                  admission, pool);
}

}  // namespace wan::server
