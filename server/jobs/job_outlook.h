// Estimates when jobs begin and end, and tells where they stand in the queue.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
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

// Returns the first event of an attempt's part of the log; attempts count from 1.
wan::v1::Event NewJobEvent(int attempt);

// Thread-safe. Changes no state of a job.
class JobOutlook {
 public:
  // All must outlive the object.
  struct Parts {
    LiveJobs& live;
    JobLedger& ledger;
    const DeviceGroups& groups;
    const ModelTable& models;
    TimeEstimator& estimator;
    std::vector<StateListener*> listeners;
  };
  explicit JobOutlook(Parts parts) : parts_(std::move(parts)), live_(parts_.live) {}

  // Callers are told to wait this long while nobody can tell how long it takes.
  static constexpr absl::Duration kUnknownTime = absl::Seconds(5);

  // Estimates when a job of this owner and priority would start if it was accepted now.
  struct ForNew {
    int jobs_ahead = 0;
    std::optional<absl::Duration> time;  // nothing while unknown
  };
  ForNew OfNew(const std::string& owner, int priority) const ABSL_LOCKS_EXCLUDED(live_.mutex);
  // Returns what is known of the running jobs, by group.
  std::vector<RunningOutlook> Running() const ABSL_LOCKS_EXCLUDED(live_.mutex);
  JobStats Stats() const ABSL_LOCKS_EXCLUDED(live_.mutex);

  // Appends a Queued event to each of the first `reach` jobs from `from` on whose position changed
  // enough to be worth one. Takes the lock for some jobs at a time. If `estimate` is true, it also
  // estimates them anew.
  void AnnouncePositions(JobQueue::Place from, bool estimate,
                         int reach = std::numeric_limits<int>::max())
      ABSL_LOCKS_EXCLUDED(live_.mutex);
  // Returns how many of the jobs after one that was added or removed should look at their
  // positions. Not all need to: the position of a job far back is reported when it has halved or
  // doubled, which takes many changes. The job at position p looks after every p/4 changes, so that
  // a change costs the logarithm of the queue's length on average; all look when a job begins.
  int ReachOfChange() ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // The event that tells a queued job its position; `before` sums up the jobs before it.
  wan::v1::Event QueuedEvent(const wan::v1::Job& job, const QueueSum& before) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);

  // Estimates how long the work takes; nothing before a step of the model was observed.
  std::optional<absl::Duration> Estimate(const std::string& model, const PlannedWork* work) const;
  // The same for callers who only want to know: before that step an assumed rate decides.
  std::optional<absl::Duration> Expect(const std::string& model, const PlannedWork* work) const;
  // Estimates the time until a job begins after the running ones and those summed up in `before`.
  std::optional<absl::Duration> TimeUntil(const QueueSum& before) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Returns how soon a caller who found the queue full may try again.
  absl::Duration RetryDelay() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Adds to `job`, which callers will see, its position and when it will end, as far as that can be
  // told.
  void AddTo(wan::v1::Job& job, const LiveJob& live) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Estimates the time until the end of the running job; nothing while that is unknown.
  std::optional<absl::Duration> TimeLeft(const LiveJob& live) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Estimates what a switch from the running job to one of `model` costs; nothing while unknown.
  std::optional<absl::Duration> SwitchCost(const LiveJob& live, const std::string& model) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Call with the first progress of an attempt.
  void NoteHeadStart(LiveJob& live, const std::vector<wan::v1::Event>& events,
                     const wan::v1::StepProgress& progress)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // The job has completed after this time: later estimates learn from it.
  void LearnFrom(const LiveJob& live, absl::Duration taken)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);

 private:
  // `before`: of a queued job, the others before it.
  void AddEta(const LiveJob& live, const std::optional<QueueSum>& before, wan::v1::Job& job) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Adds to the statistics what each group does, and when its job will end.
  void AddGroups(JobStats& stats) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(live_.mutex);
  // Estimates how long the texts and the image of a job are encoded, as far as that is known.
  absl::Duration TimeBeforeSteps(const LiveJob& live) const;
  // Returns the work of the running job that its next attempt repeats if this one stops now: at
  // most kWorkWorthKeeping less than it is, while the job is being decoded.
  absl::Duration ComputedAgain(const LiveJob& live) const;

  const Parts parts_;
  LiveJobs& live_;
  uint64_t changes_ ABSL_GUARDED_BY(live_.mutex) = 0;  // jobs that were added or removed
};

// Notes in the row how long the job reserves the device, so that the reservation survives a
// restart, after which nothing is known of the work.
void NoteReserved(wan::v1::Job& job, std::optional<absl::Duration> estimate);

}  // namespace wan::server
