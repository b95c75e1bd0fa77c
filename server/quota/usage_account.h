// Counts what each principal uses: its unfinished jobs, and the seconds for which its jobs held the
// device.
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

// Follows every job from its acceptance to its end. A running attempt counts with its estimate, an
// ended one with its real time. Writes Job.device_seconds, from which a restart rebuilds the
// account. Not thread-safe: LiveJobs guards it with its lock.
class UsageAccount {
 public:
  // The use that new jobs of a principal would add.
  struct Demand {
    int jobs = 0;
    absl::Duration estimate;  // device time of all together; zero while no estimate is known
  };
  // Returns how long it takes until the n-th of the principal's queued jobs begins.
  using TimeUntilBegun = std::function<absl::Duration(int n)>;

  // OK if the quota has room for the demand; else RESOURCE_EXHAUSTED (QUOTA_EXCEEDED). Changes
  // nothing: call Add for each job.
  absl::Status Admit(const wan::v1::Quota& quota, const std::string& owner, const Demand& demand,
                     absl::Time now, const TimeUntilBegun& time_until_begun) const;

  // Whether one more job of the principal may run.
  bool MayRun(const wan::v1::Quota& quota, const std::string& owner) const;

  // Counts what a job that has ended has used until `when`. All times that the account is given are
  // of one clock, which never jumps.
  void RecallEnded(const std::string& owner, absl::Duration held, absl::Time when);
  // Counts what a stored job that has not ended has used. If it is RUNNING its attempt is lost, and
  // has held the device until `heard`, when it last reported. `shift` turns times of its row into
  // those that the account is given. Call Add before.
  void RecallUnended(wan::v1::Job& job, absl::Time heard, absl::Duration shift);

  // A job waits from now on. Without an estimate it reserves what the job's row says.
  void Add(const wan::v1::Job& job, std::optional<absl::Duration> estimate);
  // Replaces the estimate of a waiting job. Without an estimate the job keeps what it has reserved.
  void Estimate(const std::string& job, std::optional<absl::Duration> estimate);
  // An attempt of the job has begun; `estimate` is never zero.
  void Begin(const wan::v1::Job& job, absl::Duration estimate, absl::Time now);
  // The attempt has ended after it held the device for `held`; the job waits again.
  void End(wan::v1::Job& job, absl::Duration held, absl::Time now);
  // The job has ended, or was not accepted after all.
  void Remove(const std::string& job);

  // A principal's recent use, as the queue weighs it (RecentUse).
  absl::Duration RecentUseOf(const std::string& owner, absl::Time now) const {
    return recent_.Of(owner, now);
  }
  // Fills in all but stored bytes and quota.
  wan::v1::Usage UsageOf(const std::string& owner, absl::Time now) const;

  // Jobs that ended longer ago than this need no Recall.
  static constexpr absl::Duration kMemory = UseWindow::kLength;

 private:
  struct Principal {
    int jobs = 0;  // jobs that wait or run
    int running = 0;
    absl::Duration reserved;  // their estimated device time
    UseWindow window;
  };
  struct OpenJob {
    std::string owner;
    absl::Duration reserved;
    std::optional<absl::Duration> charged;  // the part counted in recent_ while an attempt runs
    absl::Time began;                       // when that attempt began
  };

  void Count(const std::string& owner, absl::Duration held, absl::Time when);
  void ForgetIdle(absl::Time now);

  RecentUse recent_;
  std::unordered_map<std::string, Principal> principals_;
  std::unordered_map<std::string, OpenJob> open_;  // by job
  // When this many principals are remembered, those that use nothing are forgotten.
  size_t forget_at_ = 1024;
};

}  // namespace wan::server
