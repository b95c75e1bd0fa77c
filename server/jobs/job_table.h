// The jobs that have not ended: their states, and every way from one state to the next.
//
//   Accept --> QUEUED --BeginNext--> RUNNING --End--> COMPLETED, FAILED, CANCELLED
//                ^  \--Cancel--> CANCELLED      \--> QUEUED again (the server stops)
//             Recover (from the store; RUNNING becomes QUEUED, or FAILED after max_attempts)
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/jobs/attempts.h"
#include "server/jobs/deadline_timer.h"
#include "server/jobs/job_queue.h"
#include "server/jobs/job_sinks.h"
#include "server/jobs/model_registry.h"
#include "server/jobs/stats.h"
#include "server/jobs/time_estimator.h"
#include "server/store/job_store.h"
#include "server/watch/event_log.h"
#include "server/watch/listener.h"

namespace wan::server {

// A running attempt, as its runner needs it.
struct Attempt {
  wan::v1::Job job;
  absl::Time queued_since;
  std::stop_token stop;
  std::shared_ptr<ReportSink> report;
};

// What ends a job from outside.
enum class StopCause { kCancelled, kDeadline };

// Thread-safe. However many jobs wait, a call looks at a bounded number of them while it holds the
// lock; those that all jobs behind a place must hear of take it many times. A change of state and
// its event are one transaction; where not said otherwise a call
// returns before it is stored (EventLog::Flush waits for that).
class JobTable {
 public:
  // All must outlive the table, but the log must die first: it reports back what is stored.
  struct Parts {
    JobStore& store;
    EventLog& log;
    ModelRegistry& models;
    DeadlineTimer& timer;
    TimeEstimator& estimator;
    Clock& clock;
    // What a job's report says about where it runs.
    std::string device;
    std::string dtype;
    int queue_capacity = 0;
    // How many lost attempts (server/jobs/attempts.h) end a job.
    int max_attempts = 3;
    std::vector<StateListener*> listeners;
  };
  explicit JobTable(Parts parts);

  // Takes over what an earlier process left; returns once that is stored. Called first.
  absl::Status Recover();

  // Queues a job and returns it once it is stored. `stored` has name, request, image_sha256, digest
  // and tie; the model counts it already (ModelRegistry::AddJob), and keeps doing so only on OK.
  absl::StatusOr<wan::v1::Job> Accept(StoredJob stored, const std::string& image,
                                      std::shared_ptr<const PlannedWork> work);

  // Starts the next attempt; nothing if no job can run now.
  std::optional<Attempt> BeginNext();

  // Events of the running attempt.
  void AddProgress(const std::string& job, std::vector<wan::v1::Event> events,
                   const std::optional<wan::v1::StepProgress>& progress);

  // Changes what the job of the running attempt says of itself; stored with its end.
  void Annotate(const std::string& job, const std::function<void(wan::v1::Job&)>& change);

  // Ends the running attempt; returns the job's new state. A job that was stopped ends as its
  // stopper wanted, whatever the engine says: CANCELLED, or QUEUED again when the server stops
  // (unless it is done already, or tied to its caller).
  wan::v1::JobState End(const std::string& job,
                        const absl::StatusOr<std::vector<wan::v1::Artifact>>& result);

  // Ends the running attempt, whose device was lost: it counts as one that took the process with
  // it. The job goes back to the queue, or ends: FAILED (ATTEMPTS_EXHAUSTED), or CANCELLED if it
  // was stopped or is tied to its caller, for whom nothing runs again. Returns its new state.
  wan::v1::JobState EndLost(const std::string& job, std::string_view reason);

  // Puts the running job back into the queue, because what it needs is not there now. Does not
  // count against it. One that was stopped ends as its stopper wanted. Returns its new state.
  wan::v1::JobState Postpone(const std::string& job, std::string_view reason);

  // Ends a queued job at once and asks a running one to stop. Others stay as they are.
  void Cancel(const std::string& job, StopCause cause, std::string_view reason);

  // The job as it is, if it has not ended, or its end is not stored yet.
  std::optional<wan::v1::Job> Find(const std::string& job) const;
  std::optional<wan::v1::JobReport> FindReport(const std::string& job) const;
  JobStats Stats() const;

  // From now on Accept refuses (SERVER_STOPPING) and BeginNext finds nothing. A running attempt
  // does not count as lost any more, however the process ends.
  void Drain();
  // From now on Accept refuses (DEVICE_LOST) and BeginNext finds nothing: no job can run in this
  // process. Jobs stay as they are.
  void LoseDevice();
  // Waits until no job runs; false if one still does at `deadline`.
  bool AwaitIdle(absl::Time deadline);
  // Asks the running job to stop and be requeued.
  void RequeueRunning();

 private:
  struct LiveJob {
    StoredJob stored;
    bool accepting = false;  // not stored yet: nobody can know its name
    uint64_t age = 0;
    absl::Time queued_since;
    std::shared_ptr<const PlannedWork> work;  // null while unknown
    // Of the running attempt.
    std::stop_source stop;
    std::optional<StopCause> stop_cause;
    bool requeue = false;
    std::string stop_reason;
    // Of the latest attempt in this process.
    std::shared_ptr<ReportSink> report;
    AttemptTrace trace;
  };
  using LiveJobs = std::unordered_map<std::string, LiveJob>;

  // Null if there is none. Waits for a job that is being accepted.
  LiveJob* FindLive(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Takes over one job that an earlier process left; `trace` is where its attempt stood.
  void RecoverOne(StoredJob stored, AttemptTrace trace) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Puts the job into the queue; the event that tells of its place.
  wan::v1::Event Enqueue(const LiveJob& live) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  wan::v1::Event QueuedEvent(const wan::v1::Job& job, const QueueSum& before) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Tells queued jobs from `from` on of places that changed enough to be worth an event, some of
  // them at a time with the lock free in between. `estimate`: estimates them anew on the way.
  void AnnouncePositions(JobQueue::Place from, bool estimate) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<absl::Duration> Estimate(const std::string& model, const PlannedWork* work) const;
  // Estimated time until the jobs that run and that are summed up in `before` have ended.
  std::optional<absl::Duration> TimeUntil(const QueueSum& before) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration RetryDelay() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Reads from the store where the latest attempt stood, as far as its events can be read.
  AttemptTrace StoredTrace(const wan::v1::Job& job) const;
  // Requeues a job whose attempt was lost, or ends it if that was the last it may lose.
  void RequeueLost(LiveJob& live, std::string_view reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts a RUNNING job back into the queue.
  void Requeue(LiveJob& live, std::string_view reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FinishCancelled(LiveJob& live, StopCause cause, std::string_view reason)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends a job with its last event.
  void Finish(LiveJob& live, wan::v1::JobState state, const absl::Status& error,
              wan::v1::Event event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetState(LiveJob& live, wan::v1::JobState state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  wan::v1::Job View(const LiveJob& live) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Holds the lock, and notes how many entries of the queue were looked at meanwhile.
  class ABSL_SCOPED_LOCKABLE Lock {
   public:
    explicit Lock(const JobTable& table) ABSL_EXCLUSIVE_LOCK_FUNCTION(table.mutex_);
    ~Lock() ABSL_UNLOCK_FUNCTION();

   private:
    const JobTable& table_;
  };

  const Parts parts_;
  mutable absl::Mutex mutex_;
  mutable LiveJobs live_ ABSL_GUARDED_BY(mutex_);
  JobQueue queue_ ABSL_GUARDED_BY(mutex_);
  // What queue_.looked_at() was when the lock was taken.
  mutable int64_t looked_at_before_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable int64_t most_entries_at_once_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_age_ ABSL_GUARDED_BY(mutex_) = 1;
  std::string running_ ABSL_GUARDED_BY(mutex_);  // empty: none
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool device_lost_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<wan::v1::JobState, int64_t> ended_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
