#include "server/retention/retention_policy.h"

#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/conversion/convert.h"

namespace wan::server {
namespace {

struct Unit {
  const char* name;
  int64_t size;  // in seconds, or in bytes
};
// The largest first, so that ToString finds the shortest text.
constexpr Unit kAges[] = {{"d", 86'400}, {"h", 3'600}, {"m", 60}, {"s", 1}};
constexpr Unit kBytes[] = {{"TiB", int64_t{1} << 40},
                           {"GiB", int64_t{1} << 30},
                           {"MiB", int64_t{1} << 20},
                           {"KiB", int64_t{1} << 10},
                           {"B", 1}};
// So that no sum of a time and an age overflows.
constexpr int64_t kLongestAge = int64_t{36'500} * 86'400;

constexpr char kForm[] =
    "an age (30d), a number of bytes (200GiB), a number of jobs (1000), or several of them with "
    "commas between (30d,200GiB), each once and at least 1; units are s, m, h, d and B, KiB, MiB, "
    "GiB, TiB";

// Reads a whole number with one of the units, from 1 to `most`.
template <size_t kUnits>
std::optional<int64_t> Parse(std::string_view text, const Unit (&units)[kUnits], int64_t most) {
  const size_t digits = text.find_first_not_of("0123456789");
  const std::string_view unit = digits == std::string_view::npos ? "" : text.substr(digits);
  for (const Unit& candidate : units) {
    int64_t number = 0;
    if (unit != candidate.name || !absl::SimpleAtoi(std::string(text.substr(0, digits)), &number) ||
        number < 1 || number > most / candidate.size) {
      continue;
    }
    return number * candidate.size;
  }
  return std::nullopt;
}

template <size_t kUnits>
std::string Format(int64_t number, const Unit (&units)[kUnits]) {
  for (const Unit& unit : units) {
    if (number % unit.size == 0) return absl::StrCat(number / unit.size, unit.name);
  }
  return "";  // the last unit is 1
}

constexpr Unit kJobs[] = {{"", 1}};

}  // namespace

absl::StatusOr<RetentionRule> ParseRetentionRule(std::string_view text) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  RetentionRule rule;
  if (text.empty()) return rule;
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ',');
  for (const std::string& part : parts) {
    const std::optional<int64_t> seconds = Parse(part, kAges, kLongestAge);
    const std::optional<int64_t> bytes = Parse(part, kBytes, kMost);
    const std::optional<int64_t> jobs = Parse(part, kJobs, kMost);
    if (seconds.has_value() && !rule.age.has_value()) {
      rule.age = absl::Seconds(*seconds);
    } else if (bytes.has_value() && !rule.bytes.has_value()) {
      rule.bytes = bytes;
    } else if (jobs.has_value() && !rule.count.has_value()) {
      rule.count = jobs;
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("is '", std::string(text), "'; it must be ", kForm));
    }
  }
  return rule;
}

std::string ToString(const RetentionRule& rule) {
  std::vector<std::string> parts;
  if (rule.age.has_value()) parts.push_back(Format(absl::ToInt64Seconds(*rule.age), kAges));
  if (rule.bytes.has_value()) parts.push_back(Format(*rule.bytes, kBytes));
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
