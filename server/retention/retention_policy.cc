#include "server/retention/retention_policy.h"

#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/conversion/convert.h"
#include "server/conversion/quantity.h"

namespace wan::server {
namespace {

// The age is limited so that adding it to a time does not overflow.
constexpr double kLongestAge = 36'500.0 * 86'400;
constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();

constexpr char kForm[] =
    "an age (30d), a number of bytes (200GiB), a number of jobs (1000), or several of them with "
    "commas between (30d,200GiB), each once and at least 1; units are s, m, h, d and B, kB, KiB, "
    "MB, MiB, GB, GiB, TB, TiB";

std::optional<int64_t> ParseAge(const std::string& text) {
  const std::optional<double> seconds = ParseSeconds(text, kLongestAge);
  if (!seconds.has_value() || *seconds < 1 || *seconds != std::floor(*seconds)) return std::nullopt;
  return static_cast<int64_t>(*seconds);
}

std::optional<int64_t> ParseSize(const std::string& text) {
  const std::optional<uint64_t> bytes = ParseBytes(text, kMost);
  if (!bytes.has_value() || *bytes < 1) return std::nullopt;
  return static_cast<int64_t>(*bytes);
}

std::optional<int64_t> ParseCount(const std::string& text) {
  int64_t number = 0;
  const bool digits = text.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || !absl::SimpleAtoi(text, &number) || number < 1) return std::nullopt;
  return number;
}

}  // namespace

absl::StatusOr<RetentionRule> ParseRetentionRule(std::string_view text) {
  RetentionRule rule;
  if (text.empty()) return rule;
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ',');
  for (const std::string& part : parts) {
    bool good = false;
    if (HasSecondsUnit(part) && !rule.age.has_value()) {
      const std::optional<int64_t> seconds = ParseAge(part);
      good = seconds.has_value();
      if (good) rule.age = absl::Seconds(*seconds);
    } else if (HasBytesUnit(part) && !rule.bytes.has_value()) {
      rule.bytes = ParseSize(part);
      good = rule.bytes.has_value();
    } else if (!rule.count.has_value()) {
      rule.count = ParseCount(part);
      good = rule.count.has_value();
    }
    if (!good) {
      return absl::InvalidArgumentError(
          absl::StrCat("is '", std::string(text), "'; must be ", kForm));
    }
  }
  return rule;
}

std::string ToString(const RetentionRule& rule) {
  std::vector<std::string> parts;
  if (rule.age.has_value()) parts.push_back(SecondsText(absl::ToInt64Seconds(*rule.age)));
  if (rule.bytes.has_value()) parts.push_back(BytesText(static_cast<uint64_t>(*rule.bytes)));
  if (rule.count.has_value()) parts.push_back(absl::StrCat(*rule.count));
  return absl::StrJoin(parts, ",");
}

const RetentionRule& RetentionPolicy::Of(wan::v1::JobState state) const {
  static const RetentionRule none;
  switch (state) {
    case wan::v1::JOB_STATE_COMPLETED:
      return completed;
    case wan::v1::JOB_STATE_FAILED:
      return failed;
    case wan::v1::JOB_STATE_CANCELLED:
      return cancelled;
    default:
      return none;
  }
}

void RetentionPolicy::SetExpireTime(wan::v1::Job& job) const {
  job.clear_expire_time();
  const RetentionRule& rule = Of(job.state());
  if (!rule.age.has_value() || !job.has_end_time()) return;
  *job.mutable_expire_time() = ToProto(ToTime(job.end_time()) + *rule.age);
}

}  // namespace wan::server
