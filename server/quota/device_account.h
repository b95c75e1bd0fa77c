// Who has held the device for how long.
#pragma once

#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/quota/recent_use.h"
#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Counts what the attempts of jobs use: as estimated while one runs, as it was once it has ended.
// Writes Job.device_seconds, which is also what the account is made of after a restart. Not
// thread-safe: JobTable guards it with its lock.
class DeviceAccount {
 public:
  // What the owner of jobs has used lately, as the queue counts it.
  absl::Duration RecentUseOf(const std::string& owner, absl::Time now) const {
    return recent_.Of(owner, now);
  }

  // Counts a stored job that has ended.
  void Recall(const wan::v1::Job& job);
  // Counts a stored job that has not ended. If it is RUNNING its attempt is lost, and has used the
  // device until `heard`, when it last reported.
  void RecallUnended(wan::v1::Job& job, absl::Time heard);

  // An attempt has begun at the job's start_time.
  void Begin(const wan::v1::Job& job, absl::Duration estimate);
  // The attempt has ended.
  void End(wan::v1::Job& job, absl::Time now);

  // How long ago a job may have ended and still have to be recalled.
  static constexpr absl::Duration kMemory = absl::Hours(24);

 private:
  RecentUse recent_;
  std::unordered_map<std::string, absl::Duration> estimates_;  // of running attempts, by job
};

}  // namespace wan::server
