// The streams of WatchJob and Generate: a job's events from a cursor of its log.
#pragma once

#include <grpcpp/server_context.h>

#include <chrono>
#include <memory>
#include <string>

#include "server/jobs/job_service.h"
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
  WatchJobStream(const wan::v1::WatchJobRequest& request, JobService& jobs, WorkerPool& pool)
      : EventStream(jobs, pool), request_(request) {}

 private:
  absl::StatusOr<std::unique_ptr<EventCursor>> Open() override;

  const wan::v1::WatchJobRequest& request_;  // gRPC's, while the call lives
};

// Creates the job first, and cancels it when the caller goes.
class GenerateStream final : public EventStream {
 public:
  GenerateStream(const grpc::CallbackServerContext& context,
                 const wan::v1::GenerateRequest& request, JobService& jobs, WorkerPool& pool)
      : EventStream(jobs, pool), context_(context), request_(request) {}

 private:
  absl::StatusOr<std::unique_ptr<EventCursor>> Open() override;
  void OnAbandoned() override;
  bool DeadlinePassed() const;

  const std::chrono::system_clock::time_point begun_ = std::chrono::system_clock::now();
  const grpc::CallbackServerContext& context_;  // both gRPC's, while the call lives
  const wan::v1::GenerateRequest& request_;
  std::string own_job_;  // "jobs/ID" that this call created
};

}  // namespace wan::server
