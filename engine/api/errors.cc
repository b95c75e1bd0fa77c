#include "engine/api/errors.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace wan {
namespace {

constexpr char kViolationsUrl[] = "wanserve/field_violations";
constexpr char kViolationCountUrl[] = "wanserve/violation_count";
constexpr char kReasonUrl[] = "wanserve/reason";
// ASCII separators, which occur neither in the paths of fields nor in our descriptions.
constexpr char kUnitSeparator = '\x1f';
constexpr char kRecordSeparator = '\x1e';

}  // namespace

absl::Status InvalidFields(const std::vector<FieldViolation>& violations) {
  std::string payload;
  std::string message;
  const auto add = [&](const FieldViolation& violation) {
    absl::StrAppend(&payload, violation.field, std::string(1, kUnitSeparator),
                    violation.description, std::string(1, kRecordSeparator));
    absl::StrAppend(&message, message.empty() ? "" : "; ", violation.field,
                    violation.field.empty() ? "" : ": ", violation.description);
  };
  const size_t kept = std::min(violations.size(), kMaxViolations);
  for (size_t i = 0; i < kept; ++i) add(violations[i]);
  if (violations.size() > kept) {
    const size_t more = violations.size() - kept;
    add({"", absl::StrCat("and ", more, more == 1 ? " more violation" : " more violations")});
  }
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kViolationsUrl, absl::Cord(payload));
  status.SetPayload(kViolationCountUrl, absl::Cord(absl::StrCat(violations.size())));
  return status;
}

size_t ViolationCountOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kViolationCountUrl);
  size_t count = 0;
  if (payload.has_value() && !absl::SimpleAtoi(std::string(*payload), &count)) return 0;
  return count;
}

std::vector<FieldViolation> FieldViolationsOf(const absl::Status& status) {
  std::vector<FieldViolation> violations;
  const auto payload = status.GetPayload(kViolationsUrl);
  if (!payload.has_value()) return violations;
  const std::string text(*payload);
  for (const std::string& record :
       std::vector<std::string>(absl::StrSplit(text, kRecordSeparator, absl::SkipEmpty()))) {
    const size_t cut = record.find(kUnitSeparator);
    if (cut == std::string::npos) continue;
    violations.push_back({record.substr(0, cut), record.substr(cut + 1)});
  }
  return violations;
}

absl::Status WithReason(absl::Status status, std::string_view reason) {
  status.SetPayload(kReasonUrl, absl::Cord(absl::string_view(reason.data(), reason.size())));
  return status;
}

std::string ReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kReasonUrl);
  return payload.has_value() ? std::string(*payload) : std::string();
}

absl::Status OutOfMemoryError(std::string_view message) {
  return WithReason(absl::ResourceExhaustedError(absl::string_view(message.data(), message.size())),
                    kReasonOutOfMemory);
}

bool IsOutOfMemory(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && ReasonOf(status) == kReasonOutOfMemory;
}

absl::Status DeviceLostError(std::string_view message) {
  return WithReason(absl::UnavailableError(absl::string_view(message.data(), message.size())),
                    kReasonDeviceLost);
}

bool IsDeviceLost(const absl::Status& status) {
  return absl::IsUnavailable(status) && ReasonOf(status) == kReasonDeviceLost;
}

absl::Status NotFiniteError(std::string_view message) {
  return WithReason(absl::DataLossError(absl::string_view(message.data(), message.size())),
                    kReasonNotFinite);
}

bool IsNotFinite(const absl::Status& status) {
  return absl::IsDataLoss(status) && ReasonOf(status) == kReasonNotFinite;
}

}  // namespace wan
