// The jobs that have not ended, the queue, and what the device groups do: what JobStates, JobOrder
// and JobOutlook share, under one lock.
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
  bool accepting = false;  // not on disk yet, so no caller knows its name
  // Set from the job's end until that is on disk: the job before it, which callers see meanwhile.
  std::optional<wan::v1::Job> before_end;
  uint64_t age = 0;
  absl::Time queued_since;                  // of the wall clock
  absl::Time queued_instant;                // the same of the steady clock
  std::shared_ptr<const PlannedWork> work;  // null while unknown
  // How long the running attempt was estimated to take when it began.
  std::optional<absl::Duration> estimate;
  // The part of that work that earlier attempts have done.
  absl::Duration head_start;
  // Times of the steady clock: when the running attempt began, and when job.progress was last set.
  absl::Time began;
  absl::Time progress_time;
  std::stop_source stop;
  std::optional<StopCause> stop_cause;
  std::optional<std::string> requeue;  // why it is put back into the queue when it has stopped
  bool preempted = false;              // by another job, and not by the end of the server
  std::string successor;               // the job that preempted it
  int group = 0;                       // of the running attempt
  int passed_over = 0;  // how often a group took the job after it (JobOrder::TakeFor)
  std::string stop_reason;
  // Both belong to the latest attempt in this process.
  std::shared_ptr<ReportSink> report;
  AttemptTrace trace;

  // Whether the job was asked to go back into the queue, but is tied to a caller whom the end of
  // the server cuts off.
  bool LosesCaller() const { return requeue.has_value() && stored.tied_to_caller && !preempted; }
  // Returns the job as callers see it, without fields that are computed for each call.
  wan::v1::Job Shown() const;
  // The report of the latest attempt up to now; nothing if this process has begun none.
  std::optional<wan::v1::JobReport> ReportNow() const;
};

// The present and the latest work of a device group.
struct GroupWork {
  std::string running;       // the job; empty: none
  std::string latest_model;  // of its last attempt, whose weights are at hand; empty before that
};

struct LiveJobs {
  // The clock must outlive the object.
  LiveJobs(Clock& clock, int queue_capacity, int group_count);
  LiveJobs(const LiveJobs&) = delete;
  LiveJobs& operator=(const LiveJobs&) = delete;

  // Holds the lock, and notes how many entries of the queue were looked at meanwhile.
  class ABSL_SCOPED_LOCKABLE Lock {
   public:
    explicit Lock(const LiveJobs& live) ABSL_EXCLUSIVE_LOCK_FUNCTION(live.mutex);
    ~Lock() ABSL_UNLOCK_FUNCTION();

   private:
    const LiveJobs& live_;
  };

  // Returns null if there is no such job, or if it is being accepted.
  LiveJob* Find(const std::string& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  GroupWork& StateOf(int group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return groups[static_cast<size_t>(group)];
  }
  bool IsRunning(const std::string& job) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  Clock& clock;   // stamps what callers see
  Clock& steady;  // measures what lasts
  mutable absl::Mutex mutex;
  std::unordered_map<std::string, LiveJob> jobs ABSL_GUARDED_BY(mutex);
  UsageAccount account ABSL_GUARDED_BY(mutex);
  JobQueue queue ABSL_GUARDED_BY(mutex);
  std::vector<GroupWork> groups ABSL_GUARDED_BY(mutex);               // by number
  std::map<wan::v1::JobState, int64_t> ended ABSL_GUARDED_BY(mutex);  // in this process
  absl::Status refusal ABSL_GUARDED_BY(mutex);  // OK: jobs are accepted and begun
  bool closed ABSL_GUARDED_BY(mutex) = false;
  // What queue.looked_at() was when the lock was taken.
  mutable int64_t looked_at_before ABSL_GUARDED_BY(mutex) = 0;
  mutable int64_t most_entries_at_once ABSL_GUARDED_BY(mutex) = 0;
};

}  // namespace wan::server
