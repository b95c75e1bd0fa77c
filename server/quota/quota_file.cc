#include "server/quota/quota_file.h"

#include <charconv>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/auth/guarded_file.h"
#include "server/conversion/quantity.h"

namespace wan::server {
namespace {

using wan::v1::Quota;

constexpr absl::string_view kOthers = "*";
constexpr absl::string_view kUnlimited = "unlimited";
constexpr size_t kMaxPrincipal = 1024;
constexpr int kMostJobs = 1'000'000;
constexpr double kMostSeconds = 1e9;
constexpr uint64_t kMostBytes = uint64_t{8'388'607} << 40;
constexpr double kMostCalls = 10'000;
constexpr double kFewestCalls = 0.001;

template <typename Number>
std::optional<Number> Parsed(absl::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Parses the value of one limit; returns what is wrong with the value, or nothing.
using SetLimit = std::optional<std::string> (*)(absl::string_view value, Quota& quota);

template <void (Quota::*Set)(int32_t)>
std::optional<std::string> SetJobs(absl::string_view value, Quota& quota) {
  const std::optional<int32_t> number = Parsed<int32_t>(value);
  if (!number.has_value() || *number < 0 || *number > kMostJobs) {
    return absl::StrCat("must be a whole number from 0 to ", kMostJobs);
  }
  (quota.*Set)(*number);
  return std::nullopt;
}

std::optional<std::string> SetDeviceSeconds(absl::string_view value, Quota& quota) {
  const std::optional<double> seconds = ParseSeconds({value.data(), value.size()}, kMostSeconds);
  if (!seconds.has_value()) return absl::StrCat("must be ", SecondsRule(kMostSeconds));
  quota.set_device_seconds(*seconds);
  return std::nullopt;
}

std::optional<std::string> SetStoredBytes(absl::string_view value, Quota& quota) {
  const std::optional<uint64_t> bytes = ParseBytes({value.data(), value.size()}, kMostBytes);
  if (!bytes.has_value()) return absl::StrCat("must be ", BytesRule(kMostBytes));
  quota.set_stored_bytes(*bytes);
  return std::nullopt;
}

std::optional<std::string> SetCalls(absl::string_view value, Quota& quota) {
  const std::optional<double> number = Parsed<double>(value);
  if (!number.has_value() || !(*number >= kFewestCalls) || *number > kMostCalls) {
    return absl::StrCat("must be a number from ", kFewestCalls, " to ", kMostCalls);
  }
  quota.set_calls_per_second(*number);
  return std::nullopt;
}

struct Limit {
  absl::string_view name;
  SetLimit set;
};
constexpr Limit kLimits[] = {{"queued_jobs", &SetJobs<&Quota::set_queued_jobs>},
                             {"running_jobs", &SetJobs<&Quota::set_running_jobs>},
                             {"device_seconds", &SetDeviceSeconds},
                             {"stored_bytes", &SetStoredBytes},
                             {"calls_per_second", &SetCalls}};

std::optional<std::string> ParseLimit(absl::string_view text, std::set<std::string>& seen,
                                      Quota& quota) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits('=', 1));
  for (const Limit& limit : kLimits) {
    if (limit.name != parts.first) continue;
    if (!seen.insert(std::string(limit.name)).second) {
      return absl::StrCat(limit.name, " is given twice; must be given once");
    }
    const std::optional<std::string> problem = limit.set(parts.second, quota);
    if (!problem.has_value()) return std::nullopt;
    return absl::StrCat(limit.name, " is '", parts.second, "'; it ", *problem);
  }
  const std::string names = absl::StrJoin(kLimits, ", ", [](std::string* out, const Limit& limit) {
    absl::StrAppend(out, limit.name);
  });
  return absl::StrCat("'", text, "' is not a limit; must be LIMIT=VALUE with one of ", names,
                      ", or 'unlimited' alone, for example queued_jobs=20");
}

// Parses one line of the quota file; returns what is wrong with the line, or nothing.
std::optional<std::string> ParseLine(absl::string_view line, QuotaTable& table) {
  // Search for the colon from the end: a certificate's subject may contain colons, a limit may not.
  const size_t colon = line.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) {
    return "must be PRINCIPAL: LIMIT=VALUE ..., or '*' for all other principals";
  }
  const absl::string_view name = absl::StripAsciiWhitespace(line.substr(0, colon));
  if (name.empty() || name.size() > kMaxPrincipal) {
    return absl::StrCat("the principal must have 1 to ", kMaxPrincipal, " characters");
  }
  const std::vector<absl::string_view> limits =
      absl::StrSplit(line.substr(colon + 1), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (limits.empty()) return "has no limits; write LIMIT=VALUE, or 'unlimited'";
  Quota quota;
  if (limits.size() > 1 || limits.front() != kUnlimited) {
    std::set<std::string> seen;
    for (const absl::string_view limit : limits) {
      if (std::optional<std::string> problem = ParseLimit(limit, seen, quota)) return problem;
    }
  }
  if (!table.named.emplace(std::string(name), quota).second) {
    return absl::StrCat("the principal '", name, "' has a line already");
  }
  return std::nullopt;
}

}  // namespace

const wan::v1::Quota& QuotaTable::Of(std::string_view principal) const {
  const auto found = named.find(principal);
  return found == named.end() ? others : found->second;
}

absl::StatusOr<QuotaTable> ParseQuotaFile(std::string_view text, std::string_view source) {
  QuotaTable table;
  absl::Status read = ReadLines(text, source, [&](std::string_view line) {
    return ParseLine({line.data(), line.size()}, table);
  });
  if (!read.ok()) return read;
  const auto others = table.named.extract(std::string(kOthers));
  if (!others.empty()) table.others = others.mapped();
  return table;
}

absl::StatusOr<QuotaTable> ReadQuotaFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadGuardedFile(path, "who could lift their own quotas");
  if (!text.ok()) return text.status();
  return ParseQuotaFile(*text, path);
}

}  // namespace wan::server
