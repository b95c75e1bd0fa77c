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

// A running attempt counts with its estimated time, an ended attempt with its real time. The
// account writes Job.device_seconds; after a restart the account is rebuilt from these fields. Not
// thread-safe: LiveJobs guards the account with its lock.
class UsageAccount {
 public:
  // The use that the new jobs of a call would add to the use of their owner.
  struct Demand {
    int jobs = 0;
    absl::Duration estimate;  // device time of all jobs of the call; zero if unknown
  };
  // Returns how long it takes until the n-th of the principal's queued jobs begins; n counts from
  // 1.
  using TimeUntilBegun = std::function<absl::Duration(int n)>;

  // Returns OK if the quota has room for the demand; otherwise RESOURCE_EXHAUSTED (QUOTA_EXCEEDED).
  // Counts nothing: call Add for each job that was accepted.
  absl::Status Admit(const wan::v1::Quota& quota, const std::string& owner, const Demand& demand,
                     absl::Time now, const TimeUntilBegun& time_until_begun) const;

  // Whether the quota lets one more job of the principal run now.
  bool MayRun(const wan::v1::Quota& quota, const std::string& owner) const;

  // After a restart: counts the device time `held` of a job that ended in an earlier process;
  // `when` is the job's end. All times that callers pass must be of one steady clock.
  void RecallEnded(const std::string& owner, absl::Duration held, absl::Time when);
  // After a restart: counts the past use of an unfinished job of an earlier process. If the job is
  // RUNNING, the earlier process lost the job's attempt; the attempt counts until `heard`, the time
  // of the job's last event. `shift` is the account's clock minus the clock that the job's row was
  // written with. Call Add for the job before RecallUnended.
  void RecallUnended(wan::v1::Job& job, absl::Time heard, absl::Duration shift);

  // Counts a waiting job. A job without an estimate reserves Job.reserved_device_seconds.
  void Add(const wan::v1::Job& job, std::optional<absl::Duration> estimate);
  // Replaces the time that a waiting job reserves; does nothing if `estimate` is empty.
  void Estimate(const std::string& job, std::optional<absl::Duration> estimate);
  // Call Begin when an attempt of the job begins. `estimate` must not be zero.
  void Begin(const wan::v1::Job& job, absl::Duration estimate, absl::Time now);
  // Call End when an attempt of the job has ended; `held` is the time for which the attempt held
  // the device. The job then counts as waiting again.
  void End(wan::v1::Job& job, absl::Duration held, absl::Time now);
  // Call Remove when the job has ended or could not be accepted.
  void Remove(const std::string& job);

  // Returns the principal's use after decay (RecentUse), by which the queue orders principals.
  absl::Duration RecentUseOf(const std::string& owner, absl::Time now) const {
    return recent_.Of(owner, now);
  }
  // Returns the principal's use with all fields except stored bytes and quota.
  wan::v1::Usage UsageOf(const std::string& owner, absl::Time now) const;

  // RecallEnded is not needed for jobs that ended longer ago than this.
  static constexpr absl::Duration kMemory = UseWindow::kLength;

 private:
  struct Principal {
    int jobs = 0;  // number of the principal's jobs that wait or run
    int running = 0;
    absl::Duration reserved;  // estimated device time of the jobs that wait or run
    UseWindow window;
  };
  struct OpenJob {
    std::string owner;
    absl::Duration reserved;
    // The estimate that recent_ counts while an attempt runs.
    std::optional<absl::Duration> charged;
    absl::Time began;  // when the running attempt began
  };

  void Count(const std::string& owner, absl::Duration held, absl::Time when);
  void ForgetIdle(absl::Time now);

  RecentUse recent_;
  std::unordered_map<std::string, Principal> principals_;
  // Jobs that wait or run; the key is the job's name.
  std::unordered_map<std::string, OpenJob> open_;
  // When the account has this many principals, it removes the principals that use nothing.
  size_t forget_at_ = 1024;
};

}  // namespace wan::server
