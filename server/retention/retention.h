// Removes ended jobs and their files as a RetentionPolicy says, a few at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "server/retention/retention_policy.h"
#include "server/retention/wall_clock_guard.h"
#include "server/store/job_store.h"
#include "server/watch/listener.h"

namespace wan::server {

// Thread-safe. A thread of the object begins a round at once, and then one in every minute of the
// injected clock. A round removes one job at a time and holds no lock between two jobs.
class Retention {
 public:
  // All members must outlive the object. The object calls the functions on the round's thread with
  // no lock held.
  struct Parts {
    JobStore& store;
    Clock& clock;
    // Returns whether a reader has a file of the job open. The object skips a job with an open file
    // until a later round.
    std::function<bool(const std::string& job)> in_use;
    // `remove_job` removes an ended job, `remove_files` removes only its files; both return when
    // the removal is on the disk.
    std::function<absl::Status(const std::string& job)> remove_job;
    std::function<absl::Status(const std::string& job)> remove_files;
    // Called before every round: removes files that earlier removals have left, and prepares later
    // removals.
    std::function<void()> tidy;
    // Called at the end of every round that removed something.
    std::function<void(const RetentionRound& round)> on_round;
    // Called when a round ends early because of `problem`; the next round tries again.
    std::function<void(const absl::Status& problem)> on_problem;
  };
  Retention(const RetentionPolicy& policy, Parts parts);
  Retention(const Retention&) = delete;
  Retention& operator=(const Retention&) = delete;
  // Calls Stop if nobody has.
  ~Retention();

  RetentionPolicy policy() const;
  // Replaces the policy and begins a round at once. Any thread may call SetPolicy.
  void SetPolicy(const RetentionPolicy& policy);

  // Call Start at most once. Starts the thread.
  void Start();

  // Ends the thread after the current removal. Later calls do nothing.
  void Stop();

 private:
  void Loop();
  bool stopping() const;
  // Makes one round: applies all rules. Returns whether the round stopped at its limit with more to
  // remove.
  bool RunRound();
  // Applies one rule to the jobs in a state; if `files`, only to their files. Adds the removals to
  // `round`.
  absl::Status Apply(const RetentionRule& rule, wan::v1::JobState state, bool files,
                     RetentionRound& round);
  // Applies only the age limit of the rule.
  absl::Status ApplyAge(const RetentionRule& rule, wan::v1::JobState state, bool files,
                        RetentionRound& round);
  // Removes a job or its files, and counts the removal in the round. Returns false if nothing was
  // removed, because a reader has a file of the job open, or because this job alone cannot be
  // removed. Any error ends the round.
  absl::StatusOr<bool> Remove(const EndedJob& job, wan::v1::JobState state, bool files,
                              RetentionReason reason, RetentionRound& round);
  void VacuumStore();

  const Parts parts_;
  WallClockGuard guard_;  // only the thread uses it
  mutable absl::Mutex mutex_;
  RetentionPolicy policy_ ABSL_GUARDED_BY(mutex_);
  // Whether the policy has changed since the latest round began.
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace wan::server
