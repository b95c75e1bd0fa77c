// Counts each principal's unfinished jobs and the device time that its jobs have used.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/quota/recent_use.h"
#include "server/quota/use_window.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

// A running attempt counts with its estimated time, an ended one with its real time. Writes
// Job.device_seconds, from which the account is rebuilt after a restart. Not thread-safe: LiveJobs
// guards it with its lock.
class UsageAccount {
 public:
  // What the new jobs of a call would add to their owner's use.
  struct Demand {
    int jobs = 0;
    absl::Duration estimate;  // total device time; zero if unknown
  };
  // Returns the time until the n-th of the principal's queued jobs begins; n counts from 1.
  using TimeUntilBegun = std::function<absl::Duration(int n)>;

  // Returns OK if the quota has room for the demand; else RESOURCE_EXHAUSTED (QUOTA_EXCEEDED).
  // Counts nothing: call Add for each job.
  absl::Status Admit(const wan::v1::Quota& quota, const std::string& owner, const Demand& demand,
                     absl::Time now, const TimeUntilBegun& time_until_begun) const;

  // Whether one more job of the principal may run.
  bool MayRun(const wan::v1::Quota& quota, const std::string& owner) const;

  // Counts the device time `held` of an ended job of an earlier process; `when` is the job's end.
  // All times given to the account must be of one steady clock.
  void RecallEnded(const std::string& owner, absl::Duration held, absl::Time when);
  // Counts the past use of an unfinished job of an earlier process. If the job is RUNNING, its
  // attempt was lost, and counts until `heard`, the time of its last event. `shift` is the
  // account's clock minus the clock of the job's row. Call Add before.
  void RecallUnended(wan::v1::Job& job, absl::Time heard, absl::Duration shift);

  // Adds a waiting job. Without an estimate it reserves Job.reserved_device_seconds.
  void Add(const wan::v1::Job& job, std::optional<absl::Duration> estimate);
  // Replaces the reserved time of a waiting job; does nothing without an estimate.
  void Estimate(const std::string& job, std::optional<absl::Duration> estimate);
  // Call it when an attempt of the job begins. `estimate` must not be zero.
  void Begin(const wan::v1::Job& job, absl::Duration estimate, absl::Time now);
  // Call it when the attempt has ended; it has held the device for `held`. The job counts as
  // waiting again.
  void End(wan::v1::Job& job, absl::Duration held, absl::Time now);
  // Call it when the job has ended or could not be accepted.
  void Remove(const std::string& job);

  // Returns the principal's decayed use, by which the queue orders principals (RecentUse).
  absl::Duration RecentUseOf(const std::string& owner, absl::Time now) const {
    return recent_.Of(owner, now);
  }
  // Returns all fields except stored bytes and quota.
  wan::v1::Usage UsageOf(const std::string& owner, absl::Time now) const;

  // Jobs that ended longer ago than this need no RecallEnded.
  static constexpr absl::Duration kMemory = UseWindow::kLength;

 private:
  struct Principal {
    int jobs = 0;  // jobs that wait or run
    int running = 0;
    absl::Duration reserved;  // estimated device time of the `jobs`
    UseWindow window;
  };
  struct OpenJob {
    std::string owner;
    absl::Duration reserved;
    std::optional<absl::Duration> charged;  // the estimate added to recent_ while an attempt runs
    absl::Time began;                       // when that attempt began
  };

  void Count(const std::string& owner, absl::Duration held, absl::Time when);
  void ForgetIdle(absl::Time now);

  RecentUse recent_;
  std::unordered_map<std::string, Principal> principals_;
  std::unordered_map<std::string, OpenJob> open_;  // by job
  // Principals that use nothing are removed when this many are remembered.
  size_t forget_at_ = 1024;
};

}  // namespace wan::server
