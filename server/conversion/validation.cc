#include "server/conversion/validation.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/api/lora.h"
#include "engine/api/request_limits.h"
#include "proto/enum_words.h"
#include "server/conversion/color.h"
#include "server/conversion/convert.h"
#include "server/conversion/message_texts.h"
#include "server/conversion/names.h"

namespace wan::server {
namespace {

constexpr int kMaxPriority = 100;
constexpr size_t kMaxRequestId = 128;
constexpr int kMaxLabels = 64;
constexpr size_t kMaxLabelKey = 63;
constexpr size_t kMaxLabelValue = 255;
constexpr size_t kMostBytesOfCharacter = 4;  // maximum number of bytes that a character takes in
                                             // UTF-8
// Maximum number of bytes of all labels of a request together.
constexpr size_t kMaxLabelBytes =
    kMaxLabels * (kMaxLabelKey + kMaxLabelValue) * kMostBytesOfCharacter;
constexpr size_t kMaxModelBytes = 256;
constexpr size_t kMaxWebhookUrlBytes = 2048;
constexpr size_t kMaxImageBytes = size_t{32} << 20;
constexpr size_t kMaxLatentsBytes = size_t{32} << 20;
constexpr size_t kMaxJobNameBytes = 256;
constexpr size_t kMaxDigestBytes = 64;
constexpr size_t kMaxBackgroundBytes = 64;
constexpr size_t kMaxLoraNameBytes = 1024;
// One scale for each expert; a model has one or two.
constexpr size_t kMaxGuidanceScales = 2;
// Every kind of output may be named once.
constexpr size_t kMaxOutputs = wan::v1::OutputKind_ARRAYSIZE - 1;
// The earliest time of google.protobuf.Timestamp, whose range is the years 1 to 9999.
constexpr int64_t kMinTimestampSeconds = -62'135'596'800;
constexpr int64_t kMaxTimestampSeconds = 253'402'300'799;
constexpr int kMaxTimestampNanos = 999'999'999;

// Returns the number of UTF-8 characters, that is, of all bytes except continuation bytes.
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
  // Sort the labels, because the order of a protobuf map differs between runs.
  const std::map<std::string, std::string> labels(request.labels().begin(), request.labels().end());
  for (const auto& [key, value] : labels) {
    const std::string field = absl::StrCat("labels[", key.substr(0, kMaxLabelKey), "]");
    if (key.empty() || Characters(key) > kMaxLabelKey) {
      violations.push_back({field, absl::StrCat("the key must have 1 to ", kMaxLabelKey,
                                                " characters, got ", Characters(key))});
    } else if (Characters(value) > kMaxLabelValue) {
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
          {field, absl::StrCat("must be ", ValuesOf<wan::v1::OutputKind>(), ", got ", output)});
    } else if (!seen.insert(output).second) {
      violations.push_back({field, absl::StrCat(wan::v1::OutputKind_Name(output),
                                                " is asked for twice; name each kind once")});
    }
  }
}

void CheckCount(std::string_view field, size_t count, size_t most,
                std::vector<FieldViolation>& violations) {
  if (count <= most) return;
  violations.push_back(
      {std::string(field), absl::StrCat("has ", count, " entries; must have at most ", most)});
}

void CheckBytes(std::string_view field, size_t bytes, size_t most,
                std::vector<FieldViolation>& violations) {
  if (bytes <= most) return;
  violations.push_back(
      {std::string(field), absl::StrCat("has ", bytes, " bytes; must have at most ", most)});
}

void CheckLatentsSizes(const std::string& field, const wan::v1::LatentsSource& source,
                       std::vector<FieldViolation>& violations) {
  CheckBytes(field, source.data().size(), kMaxLatentsBytes, violations);
  CheckBytes(field + ".job", source.job().size(), kMaxJobNameBytes, violations);
  CheckBytes(field + ".sha256", source.sha256().size(), kMaxDigestBytes, violations);
}

// Checks that latents have a source.
void CheckLatents(const std::string& field, const wan::v1::LatentsSource& source,
                  std::vector<FieldViolation>& violations) {
  if (source.source_case() == wan::v1::LatentsSource::kJob) {
    const std::string job = field + ".job";
    const std::vector<FieldViolation> wrong = FieldViolationsOf(CheckJobName(source.job(), job));
    violations.insert(violations.end(), wrong.begin(), wrong.end());
  } else if (source.data().empty()) {
    violations.push_back({field,
                          "has no latents; must have a file in data, or name in job an earlier job "
                          "that has made latents"});
  }
}

size_t LabelBytes(const wan::v1::GenerationRequest& request) {
  size_t bytes = 0;
  for (const auto& [key, value] : request.labels()) bytes += key.size() + value.size();
  return bytes;
}

size_t LongestLoraName(const wan::v1::GenerationRequest& request) {
  size_t bytes = 0;
  for (const wan::v1::LoraScale& lora : request.loras())
    bytes = std::max(bytes, lora.name().size());
  return bytes;
}

}  // namespace

std::vector<FieldViolation> ValidateSizes(const wan::v1::GenerationRequest& request) {
  std::vector<FieldViolation> violations;
  const auto count = [](const auto& repeated) { return static_cast<size_t>(repeated.size()); };
  CheckBytes("model", request.model().size(), kMaxModelBytes, violations);
  CheckBytes("prompt", request.prompt().size(), kMaxPromptBytes, violations);
  CheckBytes("negative_prompt", request.negative_prompt().size(), kMaxPromptBytes, violations);
  CheckBytes("webhook_url", request.webhook_url().size(), kMaxWebhookUrlBytes, violations);
  CheckBytes("image", request.image().size(), kMaxImageBytes, violations);
  CheckLatentsSizes("initial_latents", request.initial_latents(), violations);
  CheckLatentsSizes("latents", request.latents(), violations);
  CheckBytes("background", request.background().size(), kMaxBackgroundBytes, violations);
  CheckCount("guidance_scale", count(request.guidance_scale()), kMaxGuidanceScales, violations);
  CheckCount("outputs", count(request.outputs()), kMaxOutputs, violations);
  CheckBytes("request_id", request.request_id().size(), kMaxRequestId * kMostBytesOfCharacter,
             violations);
  CheckCount("labels", count(request.labels()), kMaxLabels, violations);
  CheckCount("loras", count(request.loras()), kMaxLorasOfRequest, violations);
  if (violations.empty()) {
    CheckBytes("labels", LabelBytes(request), kMaxLabelBytes, violations);
    CheckBytes("loras", LongestLoraName(request), kMaxLoraNameBytes, violations);
  }
  if (violations.empty()) {
    const std::optional<std::string> field = FieldNotUtf8(request);
    if (field.has_value()) violations.push_back({*field, "is not UTF-8; must be a text in UTF-8"});
  }
  return violations;
}

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
  if (request.has_image() && request.image().empty()) {
    violations.push_back({"image", "is empty; must be a PNG, JPEG or WebP file, or be left out"});
  }
  if (request.has_initial_latents()) {
    CheckLatents("initial_latents", request.initial_latents(), violations);
  }
  if (request.has_latents()) CheckLatents("latents", request.latents(), violations);
  if (request.has_background() && !ParseColor(request.background()).has_value()) {
    violations.push_back({"background", absl::StrCat("is '", absl::CHexEscape(request.background()),
                                                     "'; must be a colour as #rrggbb, for example "
                                                     "#ffffff")});
  }
  if (request.priority() < -kMaxPriority || request.priority() > kMaxPriority) {
    violations.push_back({"priority", absl::StrCat("must be from ", -kMaxPriority, " to ",
                                                   kMaxPriority, ", got ", request.priority())});
  }
  if (request.has_deadline()) CheckDeadline(request.deadline(), now, violations);
  if (!wan::v1::Solver_IsValid(request.solver())) {
    violations.push_back({"solver", absl::StrCat("must be ", ValuesOf<wan::v1::Solver>(), ", got ",
                                                 static_cast<int>(request.solver()))});
  }
  if (!wan::v1::Quality_IsValid(request.quality())) {
    violations.push_back({"quality", absl::StrCat("must be ", ValuesOf<wan::v1::Quality>(),
                                                  ", got ", static_cast<int>(request.quality()))});
  }
  if (!wan::v1::VaePrecision_IsValid(request.vae_precision())) {
    violations.push_back(
        {"vae_precision", absl::StrCat("must be ", ValuesOf<wan::v1::VaePrecision>(), ", got ",
                                       static_cast<int>(request.vae_precision()))});
  }
  if (!wan::v1::Resume_IsValid(request.resume())) {
    violations.push_back({"resume", absl::StrCat("must be ", ValuesOf<wan::v1::Resume>(), ", got ",
                                                 static_cast<int>(request.resume()))});
  }
  if (!wan::v1::Decoder_IsValid(request.decoder())) {
    violations.push_back({"decoder", absl::StrCat("must be ", ValuesOf<wan::v1::Decoder>(),
                                                  ", got ", static_cast<int>(request.decoder()))});
  }
  CheckOutputs(request, violations);
  CheckLabels(request, violations);
  return violations;
}

}  // namespace wan::server
