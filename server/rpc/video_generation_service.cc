#include <memory>
#include <optional>
#include <utility>

#include "server/jobs/job_service.h"
#include "server/rpc/event_streams.h"
#include "server/rpc/services.h"
#include "server/rpc/unary.h"
#include "wan/v1/video_generation.grpc.pb.h"

namespace wan::server {
namespace {

// The contract's limit of one message's data.
constexpr size_t kChunkBytes = size_t{1} << 20;

class DownloadStream final : public Stream<wan::v1::DownloadArtifactResponse> {
 public:
  DownloadStream(const wan::v1::DownloadArtifactRequest& request, JobService& jobs,
                 WorkerPool& pool)
      : Stream(pool), request_(request), jobs_(jobs) {}

 private:
  Next Produce(wan::v1::DownloadArtifactResponse* chunk, absl::Status* status) override {
    const bool first = !reader_.has_value();
    if (first) {
      absl::StatusOr<JobService::OpenedArtifact> opened =
          jobs_.OpenArtifact(request_.name(), request_.offset());
      if (!opened.ok()) {
        *status = opened.status();
        return Next::kEnd;
      }
      reader_.emplace(std::move(opened->reader));
      *chunk->mutable_artifact() = std::move(opened->artifact);
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

  const wan::v1::DownloadArtifactRequest& request_;  // gRPC's, while the call lives
  JobService& jobs_;
  std::optional<ArtifactReader> reader_;
};

class VideoGenerationService final : public wan::v1::VideoGeneration::CallbackService {
 public:
  VideoGenerationService(JobService& jobs, WorkerPool& pool) : jobs_(jobs), pool_(pool) {}

  grpc::ServerWriteReactor<wan::v1::Event>* Generate(
      grpc::CallbackServerContext* context, const wan::v1::GenerateRequest* request) override {
    return GenerateStream::Begin(
        std::make_shared<GenerateStream>(*context, *request, jobs_, pool_));
  }

  grpc::ServerUnaryReactor* CreateJob(grpc::CallbackServerContext* context,
                                      const wan::v1::CreateJobRequest* request,
                                      wan::v1::Job* response) override {
    return Answer(context, pool_, response, [this, request]() -> absl::StatusOr<wan::v1::Job> {
      absl::StatusOr<JobService::Created> created =
          jobs_.Create(request->request(), /*tied_to_caller=*/false);
      if (!created.ok()) return created.status();
      return std::move(created->job);
    });
  }

  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const wan::v1::GetJobRequest* request,
                                   wan::v1::Job* response) override {
    return Answer(context, pool_, response, [this, request] { return jobs_.Get(request->name()); });
  }

  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const wan::v1::ListJobsRequest* request,
                                     wan::v1::ListJobsResponse* response) override {
    return Answer(context, pool_, response, [this, request] { return jobs_.List(*request); });
  }

  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const wan::v1::CancelJobRequest* request,
                                      wan::v1::Job* response) override {
    return Answer(context, pool_, response,
                  [this, request] { return jobs_.Cancel(request->name(), "CancelJob"); });
  }

  grpc::ServerWriteReactor<wan::v1::Event>* WatchJob(
      grpc::CallbackServerContext* /*context*/, const wan::v1::WatchJobRequest* request) override {
    return WatchJobStream::Begin(std::make_shared<WatchJobStream>(*request, jobs_, pool_));
  }

  grpc::ServerWriteReactor<wan::v1::DownloadArtifactResponse>* DownloadArtifact(
      grpc::CallbackServerContext* /*context*/,
      const wan::v1::DownloadArtifactRequest* request) override {
    return DownloadStream::Begin(std::make_shared<DownloadStream>(*request, jobs_, pool_));
  }

  grpc::ServerUnaryReactor* GetReport(grpc::CallbackServerContext* context,
                                      const wan::v1::GetReportRequest* request,
                                      wan::v1::JobReport* response) override {
    return Answer(context, pool_, response,
                  [this, request] { return jobs_.Report(request->job()); });
  }

 private:
  JobService& jobs_;
  WorkerPool& pool_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeVideoGenerationService(JobService& jobs, WorkerPool& pool) {
  return std::make_unique<VideoGenerationService>(jobs, pool);
}

}  // namespace wan::server
