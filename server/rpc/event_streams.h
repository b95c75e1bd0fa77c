// The streams of WatchJob and Generate: a job's events from a cursor of its log.
#pragma once

#include <grpcpp/server_context.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/jobs/job_service.h"
#include "server/rpc/call_service.h"
#include "server/rpc/stream.h"
#include "server/rpc/stream_heartbeat.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

class EventStream : public Stream<wan::v1::Event> {
 public:
  // Objects that all streams use; all must outlive the streams.
  struct Shared {
    JobService& jobs;
    HeartbeatOptions heartbeat;
    WorkerPool& pool;
  };

 protected:
  explicit EventStream(const Shared& shared)
      : Stream(shared.pool),
        jobs_(shared.jobs),
        clock_(shared.heartbeat.clock),
        heartbeat_(shared.heartbeat) {}

  // Opens the cursor, before the first event. Null: it cannot be opened yet, and Wake is called
  // when that is worth another try.
  virtual absl::StatusOr<std::unique_ptr<EventCursor>> Open() = 0;

  absl::StatusOr<std::unique_ptr<EventCursor>> Follow(std::string_view job, int64_t after_sequence);

  JobService& jobs_;

 private:
  Next Produce(wan::v1::Event* event, absl::Status* status) final;

  Clock& clock_;
  StreamHeartbeat heartbeat_;
  std::unique_ptr<EventCursor> cursor_;
};

class WatchJobStream final : public EventStream {
 public:
  WatchJobStream(wan::v1::WatchJobRequest request, const Shared& shared)
      : EventStream(shared), request_(std::move(request)) {}

 private:
  absl::StatusOr<std::unique_ptr<EventCursor>> Open() override;

  const wan::v1::WatchJobRequest request_;
};

// Creates the job first, or joins those who wait for it; the job ends with its last caller.
class GenerateStream final : public EventStream {
 public:
  GenerateStream(const grpc::CallbackServerContext& context,
                 AdmittedRequest<wan::v1::GenerateRequest> admitted, const Shared& shared)
      : EventStream(shared),
        workers_(shared.pool),
        given_(context.deadline() - std::chrono::system_clock::now()),
        admitted_(std::move(admitted)) {}
  ~GenerateStream() override;

 private:
  absl::StatusOr<std::unique_ptr<EventCursor>> Open() override;
  void OnAbandoned() override;
  bool DeadlinePassed() const;

  WorkerPool& workers_;
  // The deadline that the caller gave, as a duration at the call's begin.
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  const std::chrono::system_clock::duration given_;
  // Kept only until the job is made, because it would hold the image while the job runs.
  std::optional<AdmittedRequest<wan::v1::GenerateRequest>> admitted_;
  // The job that is being made. Its caller may go before it is there.
  struct Making {
    absl::Mutex mutex;
    bool abandoned ABSL_GUARDED_BY(mutex) = false;
    bool deadline_passed ABSL_GUARDED_BY(mutex) = false;
    std::optional<absl::StatusOr<JobService::Created>> made ABSL_GUARDED_BY(mutex);
  };
  // On any thread.
  bool IsAbandoned();
  void OnMade(absl::StatusOr<JobService::Created> created);

  Making making_;
  std::string own_job_;  // "jobs/ID" that lives as long as this call
};

}  // namespace wan::server
