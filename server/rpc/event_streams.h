// The streams of WatchJob and Generate, which send a job's events to a caller.
#pragma once

#include <grpcpp/server_context.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/calls/stream_heartbeat.h"
#include "server/jobs/job_service.h"
#include "server/rpc/call_service.h"
#include "server/rpc/stream.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

class EventStream : public Stream<wan::v1::Event> {
 public:
  // Objects that all streams use; they must outlive the streams.
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

  // Opens the cursor from which the stream reads the events. Returns null if the job does not exist
  // yet; the subclass then calls Wake to have Open called again.
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

// Creates the job, or joins the callers of an existing one with the same request_id. The job is
// cancelled when its last caller has gone.
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
  // The time when the call began, and the time from then to the caller's deadline.
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  const std::chrono::system_clock::duration given_;
  // The request is released when the job is created, because it holds the image.
  std::optional<AdmittedRequest<wan::v1::GenerateRequest>> admitted_;
  // The state of a call of JobService::Create, shared with the callback. The caller may go away
  // before Create ends.
  struct Making {
    absl::Mutex mutex;
    bool abandoned ABSL_GUARDED_BY(mutex) = false;
    bool deadline_passed ABSL_GUARDED_BY(mutex) = false;
    std::optional<absl::StatusOr<JobService::Created>> made ABSL_GUARDED_BY(mutex);
  };
  // Any thread may call IsAbandoned.
  bool IsAbandoned();
  void OnMade(absl::StatusOr<JobService::Created> created);

  Making making_;
  std::string own_job_;  // the job that is tied to this caller, "jobs/ID"
};

}  // namespace wan::server
