// The data that JobStates, JobOrder and JobOutlook share under one lock: the jobs that have not
// ended, the queue, and the work of the device groups.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/jobs/attempts.h"
#include "server/jobs/job_queue.h"
#include "server/jobs/job_sinks.h"
#include "server/jobs/time_estimator.h"
#include "server/quota/usage_account.h"
#include "server/store/job_store.h"
#include "server/watch/listener.h"

namespace wan::server {

struct LiveJob {
  StoredJob stored;
  bool accepting = false;  // true: the job is not on disk yet, so no caller knows its name
  // The job as it was before its end; callers see this version until the end is on disk.
  std::optional<wan::v1::Job> before_end;
  uint64_t age = 0;
  absl::Time queued_since;                  // when the job was queued, on the wall clock
  absl::Time queued_instant;                // when the job was queued, on the steady clock
  std::shared_ptr<const PlannedWork> work;  // the planned work; null while unknown
  // How long the running attempt was expected to take when it began.
  std::optional<absl::Duration> estimate;
  // The part of `estimate` that earlier attempts have already computed.
  absl::Duration head_start;
  // Times of the steady clock: when the running attempt began, and when job.progress was last set.
  absl::Time began;
  absl::Time progress_time;
  std::stop_source stop;
  std::optional<StopCause> stop_cause;
  std::optional<std::string> requeue;  // if set: requeue the job when it stops, for this reason
  bool preempted = false;  // the reason of `requeue` is another job, not the server's stop
  std::string successor;   // the job that runs in place of the preempted one
  int group = 0;           // the group of the running attempt
  int passed_over = 0;     // how often a later job was taken before this one (JobOrder::TakeFor)
  std::string stop_reason;
  // `report` and `trace` belong to the latest attempt that this process has begun.
  std::shared_ptr<ReportSink> report;
  AttemptTrace trace;

  // Whether the job must end instead of being requeued, because the job is tied to a caller and the
  // server's stop cuts that caller off.
  bool LosesCaller() const { return requeue.has_value() && stored.tied_to_caller && !preempted; }
  // Returns the job as callers see it, without the fields that are computed anew for each call.
  wan::v1::Job Shown() const;
  // Returns the latest attempt's report so far; nothing if this process has begun no attempt.
  std::optional<wan::v1::JobReport> ReportNow() const;
};

// The job that a device group runs now, and the model of the group's latest attempt.
struct GroupWork {
  std::string running;       // the job that the group runs; empty: no job
  std::string latest_model;  // the model of the group's latest attempt; empty before the first
};

struct LiveJobs {
  // The clock must outlive the object.
  LiveJobs(Clock& clock, int queue_capacity, int group_count);
  LiveJobs(const LiveJobs&) = delete;
  LiveJobs& operator=(const LiveJobs&) = delete;

  // Holds the mutex, and records how many entries of the queue were looked at meanwhile.
  class ABSL_SCOPED_LOCKABLE Lock {
   public:
    explicit Lock(const LiveJobs& live) ABSL_EXCLUSIVE_LOCK_FUNCTION(live.mutex);
    ~Lock() ABSL_UNLOCK_FUNCTION();

   private:
    const LiveJobs& live_;
  };

  // Returns null if there is no such job, or if the job is still being accepted.
  LiveJob* Find(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  GroupWork& StateOf(int group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return groups[static_cast<size_t>(group)];
  }
  bool IsRunning(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  Clock& clock;   // the clock for times that callers see
  Clock& steady;  // the clock for durations
  mutable absl::Mutex mutex;
  std::unordered_map<std::string, LiveJob> jobs ABSL_GUARDED_BY(mutex);
  UsageAccount account ABSL_GUARDED_BY(mutex);
  JobQueue queue ABSL_GUARDED_BY(mutex);
  std::vector<GroupWork> groups ABSL_GUARDED_BY(mutex);  // the index is the group's number
  // Number of jobs that ended in this process, by state.
  std::map<wan::v1::JobState, int64_t> ended ABSL_GUARDED_BY(mutex);
  absl::Status refusal ABSL_GUARDED_BY(mutex);  // OK: the server accepts and begins jobs
  bool closed ABSL_GUARDED_BY(mutex) = false;
  // The value of queue.looked_at() when the mutex was taken.
  mutable int64_t looked_at_before ABSL_GUARDED_BY(mutex) = 0;
  mutable int64_t most_entries_at_once ABSL_GUARDED_BY(mutex) = 0;
};

}  // namespace wan::server
