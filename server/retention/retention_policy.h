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

// The limits for one kind of jobs. The oldest jobs beyond a limit are removed. An unset limit
// removes nothing.
struct RetentionRule {
  std::optional<absl::Duration> age;  // since the job's end
  std::optional<int64_t> bytes;
  std::optional<int64_t> count;

  bool empty() const { return !age.has_value() && !bytes.has_value() && !count.has_value(); }
  friend bool operator==(const RetentionRule&, const RetentionRule&) = default;
};

// Parses "30d", "200GiB", "1000", or a list, "30d,200GiB"; an empty text sets no limit. An age has
// the unit s, m, h or d, a size a unit of ParseBytes, and a number of jobs no unit. The message of
// INVALID_ARGUMENT continues a sentence that begins with the setting's name.
absl::StatusOr<RetentionRule> ParseRetentionRule(std::string_view text);

// Inverse of ParseRetentionRule.
std::string ToString(const RetentionRule& rule);

struct RetentionPolicy {
  // Limits for whole jobs, including their files.
  RetentionRule completed;
  RetentionRule failed;
  RetentionRule cancelled;
  // Limits for the files of completed jobs, whose rows stay.
  RetentionRule artifacts;

  // Returns the rule for whole jobs that have ended in `state`; an empty one for other states.
  const RetentionRule& Of(wan::v1::JobState state) const;

  // Sets expire_time to the time at which the job is removed because of its age, or clears it if
  // there is no such limit.
  void SetExpireTime(wan::v1::Job& job) const;
};

}  // namespace wan::server
