// Estimates when jobs begin and end, and computes their positions in the queue.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "server/jobs/device_groups.h"
#include "server/jobs/job_ledger.h"
#include "server/jobs/job_queue.h"
#include "server/jobs/job_stats.h"
#include "server/jobs/live_jobs.h"
#include "server/jobs/model_table.h"
#include "server/jobs/stop_decision.h"
#include "server/jobs/time_estimator.h"
#include "server/watch/listener.h"

namespace wan::server {

// Returns an event that has only the attempt's number; attempts count from 1.
wan::v1::Event NewJobEvent(int attempt);

// Thread-safe. Never changes the state of a job.
class JobOutlook {
 public:
  // All members must outlive the object.
  struct Parts {
    LiveJobs& live;
    JobLedger& ledger;
    const DeviceGroups& groups;
    const ModelTable& models;
    TimeEstimator& estimator;
    std::vector<StateListener*> listeners;
  };
  explicit JobOutlook(Parts parts) : parts_(std::move(parts)), live_(parts_.live) {}

  // The retry delay in errors while no estimate is known.
  static constexpr absl::Duration kUnknownTime = absl::Seconds(5);

  // The estimate for a new job of this owner and priority, if it were accepted now.
  struct ForNew {
    int jobs_ahead = 0;
    std::optional<absl::Duration> time;  // nothing if the time is unknown
  };
  ForNew OfNew(const std::string& owner, int priority) const ABSL_LOCKS_EXCLUDED(live_.mutex);
  // Returns the estimates of the running jobs, in the order of their groups.
  std::vector<RunningOutlook> Running() const ABSL_LOCKS_EXCLUDED(live_.mutex);
  JobStats Stats() const ABSL_LOCKS_EXCLUDED(live_.mutex);

  // Visits the first `reach` jobs at and after the place `from`, and appends a Queued event to each
  // whose position has changed enough. Takes the lock for a few jobs at a time, not for the whole
  // visit. If `estimate` is true, also updates the jobs' estimates.
  void AnnouncePositions(JobQueue::Place from, bool estimate,
                         int reach = std::numeric_limits<int>::max())
      ABSL_LOCKS_EXCLUDED(live_.mutex);
  // Returns the `reach` of AnnouncePositions for a job that was added or removed. A far position is
  // reported only when it has halved or doubled, which takes many changes, so the job at position p
  // is visited after every p/4 changes. So the average cost of a change is logarithmic in the
  // queue's length. When a job begins, all jobs are visited.
  int ReachOfChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Returns the Queued event of a job; `before` sums up the jobs before it in the queue.
  wan::v1::Event QueuedEvent(const wan::v1::Job& job, const QueueSum& before) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);

  // Estimates the duration of the work for decisions of the server; returns nothing until a step of
  // the model was observed.
  std::optional<absl::Duration> Estimate(const std::string& model, const PlannedWork* work) const;
  // Estimates the duration of the work for callers; until a step of the model was observed, uses an
  // assumed rate.
  std::optional<absl::Duration> Expect(const std::string& model, const PlannedWork* work) const;
  // Estimates the time until the start of a job that must wait for the running jobs and for the
  // jobs in `before`.
  std::optional<absl::Duration> TimeUntil(const QueueSum& before) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Returns the retry delay for a caller who found the queue full.
  absl::Duration RetryDelay() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Sets the position and the estimated time until the end, where these are known, in `job`, which
  // is the copy that callers see.
  void AddTo(wan::v1::Job& job, const LiveJob& live) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Estimates the time until the end of the running job; nothing while that is unknown.
  std::optional<absl::Duration> TimeLeft(const LiveJob& live) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Estimates the device time lost by switching from the running job to a job of `model` and back;
  // nothing while unknown.
  std::optional<absl::Duration> SwitchCost(const LiveJob& live, const std::string& model) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Call NoteHeadStart with the first progress of an attempt, which tells how many steps earlier
  // attempts have computed.
  void NoteHeadStart(LiveJob& live, const std::vector<wan::v1::Event>& events,
                     const wan::v1::StepProgress& progress)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Call LearnFrom when the job has completed: later estimates learn from the time `taken`.
  void LearnFrom(const LiveJob& live, absl::Duration taken)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);

 private:
  // `before` is the sum of the jobs before a queued job; nullopt for a running job.
  void AddEta(const LiveJob& live, const std::optional<QueueSum>& before, wan::v1::Job& job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Adds each group's running job, and the estimated time until its end, to the statistics.
  void AddGroups(JobStats& stats) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Estimates the time to encode the job's texts and image; zero while unknown.
  absl::Duration TimeBeforeSteps(const LiveJob& live) const;
  // Returns how long the job's next attempt would take to repeat work if the job stopped now. While
  // the job is being decoded, the result may be up to kWorkWorthKeeping too low.
  absl::Duration ComputedAgain(const LiveJob& live) const;

  const Parts parts_;
  LiveJobs& live_;
  uint64_t changes_ ABSL_GUARDED_BY(live_.mutex) = 0;  // number of jobs that were added or removed
};

// Stores the job's estimated device time in its row, so that the reservation survives a restart;
// after a restart the job must be planned again.
void NoteReserved(wan::v1::Job& job, std::optional<absl::Duration> estimate);

}  // namespace wan::server
