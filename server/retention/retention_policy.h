// The limits of age, bytes and number beyond which ended jobs are removed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// The limits for one kind of ended jobs. When a limit is exceeded, the oldest jobs are removed. An
// unset limit removes nothing.
struct RetentionRule {
  std::optional<absl::Duration> age;  // longest time since the job's end
  std::optional<int64_t> bytes;
  std::optional<int64_t> count;

  bool empty() const { return !age.has_value() && !bytes.has_value() && !count.has_value(); }
  friend bool operator==(const RetentionRule&, const RetentionRule&) = default;
};

// Parses "30d", "200GiB", "1000", or a list of these, "30d,200GiB"; an empty text sets no limit. An
// age has the unit s, m, h or d, a size has a unit of ParseBytes, and a number of jobs has no unit.
// The message of INVALID_ARGUMENT continues a sentence that begins with the setting's name.
absl::StatusOr<RetentionRule> ParseRetentionRule(std::string_view text);

// The inverse of ParseRetentionRule.
std::string ToString(const RetentionRule& rule);

struct RetentionPolicy {
  // Limits for whole jobs, that is, the jobs and their files.
  RetentionRule completed;
  RetentionRule failed;
  RetentionRule cancelled;
  // Limits for the files of completed jobs; the rows of these jobs stay.
  RetentionRule artifacts;

  // Returns the rule for whole jobs that have ended in `state`; an empty rule for other states.
  const RetentionRule& Of(wan::v1::JobState state) const;

  // Sets expire_time to the time at which the job will be removed because of its age; clears it if
  // no age limit holds for the job.
  void SetExpireTime(wan::v1::Job& job) const;
};

}  // namespace wan::server
