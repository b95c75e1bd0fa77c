#include "server/conversion/validation.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "server/conversion/convert.h"

namespace wan::server {
namespace {

constexpr int kMaxPriority = 100;
constexpr size_t kMaxRequestId = 128;
constexpr int kMaxLabels = 64;
constexpr size_t kMaxLabelKey = 63;
constexpr size_t kMaxLabelValue = 255;
// What google.protobuf.Timestamp may hold: years 1 to 9999.
constexpr int64_t kMinTimestampSeconds = -62'135'596'800;
constexpr int64_t kMaxTimestampSeconds = 253'402'300'799;
constexpr int kMaxTimestampNanos = 999'999'999;

// Characters of UTF-8 text: all bytes but those that continue one.
size_t Characters(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](unsigned char byte) { return (byte & 0xC0U) != 0x80U; }));
}

void CheckDeadline(const google::protobuf::Timestamp& deadline, absl::Time now,
                   std::vector<FieldViolation>& violations) {
  if (deadline.seconds() < kMinTimestampSeconds || deadline.seconds() > kMaxTimestampSeconds ||
      deadline.nanos() < 0 || deadline.nanos() > kMaxTimestampNanos) {
    violations.push_back(
        {"deadline", absl::StrCat("must be a valid timestamp, got ", deadline.seconds(), " s ",
                                  deadline.nanos(), " ns")});
  } else if (ToTime(deadline) <= now) {
    violations.push_back(
        {"deadline", absl::StrCat("must lie in the future, got ",
                                  absl::FormatTime(ToTime(deadline), absl::UTCTimeZone()), " at ",
                                  absl::FormatTime(now, absl::UTCTimeZone()))});
  }
}

void CheckLabels(const wan::v1::GenerationRequest& request,
                 std::vector<FieldViolation>& violations) {
  if (request.labels_size() > kMaxLabels) {
    violations.push_back(
        {"labels", absl::StrCat("must be at most ", kMaxLabels, ", got ", request.labels_size())});
  }
  // A map's order differs from run to run; the answer must not.
  const std::map<std::string, std::string> labels(request.labels().begin(), request.labels().end());
  for (const auto& [key, value] : labels) {
    const std::string field = absl::StrCat("labels[", key.substr(0, kMaxLabelKey), "]");
    if (key.empty() || Characters(key) > kMaxLabelKey) {
      violations.push_back({field, absl::StrCat("the key must have 1 to ", kMaxLabelKey,
                                                " characters, got ", Characters(key))});
    }
    if (Characters(value) > kMaxLabelValue) {
      violations.push_back({field, absl::StrCat("the value must have at most ", kMaxLabelValue,
                                                " characters, got ", Characters(value))});
    }
  }
}

void CheckOutputs(const wan::v1::GenerationRequest& request,
                  std::vector<FieldViolation>& violations) {
  std::set<int> seen;
  for (int i = 0; i < request.outputs_size(); ++i) {
    const int output = request.outputs(i);
    const std::string field = absl::StrCat("outputs[", i, "]");
    if (output == wan::v1::OUTPUT_KIND_UNSPECIFIED || !wan::v1::OutputKind_IsValid(output)) {
      violations.push_back(
          {field, absl::StrCat("must be OUTPUT_KIND_MP4, OUTPUT_KIND_LOSSLESS_MKV or "
                               "OUTPUT_KIND_LATENTS, got ",
                               output)});
    } else if (!seen.insert(output).second) {
      violations.push_back(
          {field, absl::StrCat(wan::v1::OutputKind_Name(output), " is asked for twice")});
    }
  }
}

}  // namespace

std::vector<FieldViolation> ValidateRequestId(const wan::v1::GenerationRequest& request) {
  const size_t characters = Characters(request.request_id());
  if (characters <= kMaxRequestId) return {};
  return {{"request_id",
           absl::StrCat("must have at most ", kMaxRequestId, " characters, got ", characters)}};
}

std::vector<FieldViolation> ValidateRequest(const wan::v1::GenerationRequest& request,
                                            absl::Time now) {
  std::vector<FieldViolation> violations = ValidateRequestId(request);
  if (request.model().empty()) violations.push_back({"model", "must name a model"});
  if (request.priority() < -kMaxPriority || request.priority() > kMaxPriority) {
    violations.push_back({"priority", absl::StrCat("must be ", -kMaxPriority, " to ", kMaxPriority,
                                                   ", got ", request.priority())});
  }
  if (request.has_deadline()) CheckDeadline(request.deadline(), now, violations);
  if (!wan::v1::Solver_IsValid(request.solver())) {
    violations.push_back(
        {"solver", absl::StrCat("must be SOLVER_UNIPC, SOLVER_DPMPP or SOLVER_EULER, got ",
                                static_cast<int>(request.solver()))});
  }
  CheckOutputs(request, violations);
  CheckLabels(request, violations);
  if (request.preview_interval() < 0) {
    violations.push_back({"preview_interval", absl::StrCat("must be 0 (none) or more steps, got ",
                                                           request.preview_interval())});
  }
  return violations;
}

}  // namespace wan::server
