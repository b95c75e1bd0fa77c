// The streams of WatchJob and Generate: a job's events from a cursor of its log.
#pragma once

#include <grpcpp/server_context.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/jobs/job_service.h"
#include "server/rpc/call_service.h"
#include "server/rpc/stream.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

class EventStream : public Stream<wan::v1::Event> {
 protected:
  EventStream(JobService& jobs, WorkerPool& pool) : Stream(pool), jobs_(jobs) {}

  // Opens the cursor, before the first event.
  virtual absl::StatusOr<std::unique_ptr<EventCursor>> Open() = 0;

  absl::StatusOr<std::unique_ptr<EventCursor>> Follow(std::string_view job, int64_t after_sequence);

  JobService& jobs_;

 private:
  Next Produce(wan::v1::Event* event, absl::Status* status) final;

  std::unique_ptr<EventCursor> cursor_;
};

class WatchJobStream final : public EventStream {
 public:
  WatchJobStream(wan::v1::WatchJobRequest request, JobService& jobs, WorkerPool& pool)
      : EventStream(jobs, pool), request_(std::move(request)) {}

 private:
  absl::StatusOr<std::unique_ptr<EventCursor>> Open() override;

  const wan::v1::WatchJobRequest request_;
};

// Creates the job first, and cancels it when the caller goes.
class GenerateStream final : public EventStream {
 public:
  GenerateStream(const grpc::CallbackServerContext& context,
                 AdmittedRequest<wan::v1::GenerateRequest> admitted, JobService& jobs,
                 WorkerPool& pool)
      : EventStream(jobs, pool), context_(context), admitted_(std::move(admitted)) {}

 private:
  absl::StatusOr<std::unique_ptr<EventCursor>> Open() override;
  void OnAbandoned() override;
  bool DeadlinePassed() const;

  const std::chrono::system_clock::time_point begun_ = std::chrono::system_clock::now();
  const grpc::CallbackServerContext& context_;  // gRPC's, while the call lives
  // Until the job is made: an image would be held for as long as the job runs.
  std::optional<AdmittedRequest<wan::v1::GenerateRequest>> admitted_;
  std::string own_job_;  // "jobs/ID" that this call created
};

}  // namespace wan::server
