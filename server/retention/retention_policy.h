// The limits of age, bytes and number up to which ended jobs are kept.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// The limits of one kind of jobs. Jobs beyond a limit are removed, the oldest first. A limit that
// is not set removes nothing.
struct RetentionRule {
  std::optional<absl::Duration> age;  // since the job's end
  std::optional<int64_t> bytes;
  std::optional<int64_t> count;

  bool empty() const { return !age.has_value() && !bytes.has_value() && !count.has_value(); }
  friend bool operator==(const RetentionRule&, const RetentionRule&) = default;
};

// Reads "30d", "200GiB", "1000", or several of them, "30d,200GiB"; an empty text sets no limit. An
// age has the unit s, m, h or d, a number of bytes one of those that ParseBytes reads, and a number
// of jobs none. INVALID_ARGUMENT, whose message continues a sentence that begins with the setting's
// name.
absl::StatusOr<RetentionRule> ParseRetentionRule(std::string_view text);

// Returns the text that ParseRetentionRule reads as this rule.
std::string ToString(const RetentionRule& rule);

struct RetentionPolicy {
  // Limits of whole jobs, with everything that belongs to them.
  RetentionRule completed;
  RetentionRule failed;
  RetentionRule cancelled;
  // Limits of the files of completed jobs; the jobs stay.
  RetentionRule artifacts;

  // Returns the rule for whole jobs that have ended in `state`; an empty one for other states.
  const RetentionRule& Of(wan::v1::JobState state) const;

  // Sets expire_time to when the job's age removes it, or clears it if that never happens.
  void SetExpireTime(wan::v1::Job& job) const;
};

}  // namespace wan::server
