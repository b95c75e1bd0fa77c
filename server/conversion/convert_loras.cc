// The part of convert.h that converts LoRAs.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "engine/api/lora.h"
#include "engine/api/utf8.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

// The .proto files state this limit.
constexpr size_t kMostLeftOutTensors = 100;

wan::v1::LoraSchedule ToProto(const LoraSchedule& schedule) {
  wan::v1::LoraSchedule message;
  message.set_steps(schedule.steps);
  message.mutable_sigmas()->Assign(schedule.sigmas.begin(), schedule.sigmas.end());
  if (schedule.shift) message.set_shift(*schedule.shift);
  message.mutable_guidance_scale()->Assign(schedule.guidance_scale.begin(),
                                           schedule.guidance_scale.end());
  if (schedule.boundary_step) message.set_boundary_step(*schedule.boundary_step);
  return message;
}

// Converts the sources of the field `field`. Adds a violation for each expert that does not exist.
std::vector<LoraSource> ToSources(
    const std::string& field, const google::protobuf::RepeatedPtrField<wan::v1::LoraSource>& list,
    std::vector<FieldViolation>& violations) {
  std::vector<LoraSource> sources;
  for (int i = 0; i < list.size(); ++i) {
    const wan::v1::LoraSource& lora = list[i];
    const std::optional<ExpertRole> expert = ParseExpert(lora.expert());
    if (!lora.expert().empty() && !expert.has_value() && violations.size() < kMaxViolations) {
      violations.push_back({absl::StrCat(field, "[", i, "].expert"),
                            absl::StrCat("is '", lora.expert(),
                                         "'; must be high or low, or empty for every expert")});
    }
    LoraSource& added = sources.emplace_back(LoraSource{lora.name(), expert, lora.path()});
    if (lora.has_schedule()) added.schedule = ToLoraSchedule(lora.schedule());
  }
  return sources;
}

}  // namespace

LoraSchedule ToLoraSchedule(const wan::v1::LoraSchedule& message) {
  LoraSchedule schedule;
  schedule.steps = message.steps();
  schedule.sigmas.assign(message.sigmas().begin(), message.sigmas().end());
  if (message.has_shift()) schedule.shift = message.shift();
  if (!message.guidance_scale().empty()) {
    schedule.guidance_scale.assign(message.guidance_scale().begin(),
                                   message.guidance_scale().end());
  }
  if (message.has_boundary_step()) schedule.boundary_step = message.boundary_step();
  return schedule;
}

wan::v1::Lora ToProto(const LoraDescription& description) {
  wan::v1::Lora lora;
  lora.set_name(description.name);
  for (const LoraPartDescription& part : description.parts) {
    wan::v1::Lora::Part& added = *lora.add_parts();
    added.set_expert(std::string(NameOf(part.expert)));
    added.set_path(ToUtf8(part.path));
    for (const std::string& kind : part.kinds) added.add_kinds(kind);
    added.set_rank(part.rank);
    added.set_tensors(part.tensors);
    if (part.min_factor) added.set_min_factor(*part.min_factor);
    if (part.max_factor) added.set_max_factor(*part.max_factor);
    const std::vector<std::string>& left_out = part.left_out_tensors;
    added.set_left_out_count(static_cast<int64_t>(left_out.size()));
    for (size_t i = 0; i < std::min(left_out.size(), kMostLeftOutTensors); ++i) {
      added.add_left_out_tensors(ToUtf8(left_out[i]));
    }
  }
  lora.set_host_bytes(description.host_bytes);
  if (description.schedule) *lora.mutable_schedule() = ToProto(*description.schedule);
  lora.set_schedule_recognised(description.is_recognised);
  return lora;
}

wan::v1::SkippedLora ToProto(const SkippedLora& skipped) {
  wan::v1::SkippedLora message;
  message.set_name(skipped.name);
  message.set_path(ToUtf8(skipped.path));
  *message.mutable_error() = ToProto(skipped.error);
  return message;
}

absl::StatusOr<ModelSpec> ToModelSpec(const wan::v1::LoadModelRequest& request) {
  ModelSpec spec{request.name(), request.path()};
  std::vector<FieldViolation> violations;
  spec.loras = ToSources("loras", request.loras(), violations);
  if (!violations.empty()) return InvalidFields(violations);
  return spec;
}

absl::StatusOr<LoraEdits> ToLoraEdits(const wan::v1::LoadModelRequest& request) {
  LoraEdits edits;
  std::vector<FieldViolation> violations;
  edits.add = ToSources("added_loras", request.added_loras(), violations);
  edits.remove.assign(request.removed_loras().begin(), request.removed_loras().end());
  if (!edits.empty() && (!request.path().empty() || !request.loras().empty())) {
    const char* const field = edits.add.empty() ? "removed_loras" : "added_loras";
    violations.push_back({field,
                          "changes the LoRAs that the server knows; must be left out where path "
                          "or loras is given"});
  }
  if (!violations.empty()) return InvalidFields(violations);
  return edits;
}

}  // namespace wan::server
