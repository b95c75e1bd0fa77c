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

// Thread-safe. Its own thread begins a round at once and then every minute of the injected clock. A
// round removes one job at a time and holds no lock between two jobs.
class Retention {
 public:
  // All must outlive the object. The functions are called on the thread of the round with no lock
  // held.
  struct Parts {
    JobStore& store;
    Clock& clock;
    // Returns whether a reader has a file of the job open. Such a job is skipped until a later
    // round.
    std::function<bool(const std::string& job)> in_use;
    // Removes an ended job, or its files alone, and returns when that is on the disk.
    std::function<absl::Status(const std::string& job)> remove_job;
    std::function<absl::Status(const std::string& job)> remove_files;
    // Called before every round: removes what earlier removals left, and prepares for later ones.
    std::function<void()> tidy;
    // Called at the end of every round that removed something.
    std::function<void(const RetentionRound& round)> on_round;
    // Called when a round ends early; the next one tries again.
    std::function<void(const absl::Status& problem)> on_problem;
  };
  Retention(const RetentionPolicy& policy, Parts parts);
  Retention(const Retention&) = delete;
  Retention& operator=(const Retention&) = delete;
  // Calls Stop().
  ~Retention();

  RetentionPolicy policy() const;
  // Replaces the policy and begins a round at once. Any thread may call it.
  void SetPolicy(const RetentionPolicy& policy);

  // Call once. Starts the thread.
  void Start();

  // Ends the thread after the current removal. Idempotent.
  void Stop();

 private:
  void Loop();
  bool stopping() const;
  // Applies all rules. Returns whether more is left to remove than one round may.
  bool RunRound();
  // Applies one rule to the jobs of a state, or only to their files if `files`. Adds what it
  // removes to `round`.
  absl::Status Apply(const RetentionRule& rule, wan::v1::JobState state, bool files,
                     RetentionRound& round);
  // Applies only the rule's age.
  absl::Status ApplyAge(const RetentionRule& rule, wan::v1::JobState state, bool files,
                        RetentionRound& round);
  // Removes a job or its files and counts that. Returns false if it was left in place: it is in
  // use, or this job alone cannot be removed. Any error ends the round.
  absl::StatusOr<bool> Remove(const EndedJob& job, wan::v1::JobState state, bool files,
                              RetentionReason reason, RetentionRound& round);
  void VacuumStore();

  const Parts parts_;
  WallClockGuard guard_;  // used by the thread only
  mutable absl::Mutex mutex_;
  RetentionPolicy policy_ ABSL_GUARDED_BY(mutex_);
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;  // since the latest round began
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace wan::server
