#include "client/wanctl/lora_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/wanctl/text.h"

namespace wan::client {
namespace {

std::string ScheduleText(const wan::v1::LoraSchedule& schedule) {
  std::string text = absl::StrCat(schedule.steps(), " steps, guidance ",
                                  absl::StrJoin(schedule.guidance_scale(), ","));
  if (schedule.has_shift()) absl::StrAppend(&text, ", shift ", schedule.shift());
  if (!schedule.sigmas().empty()) {
    absl::StrAppend(&text, ", sigmas ", absl::StrJoin(schedule.sigmas(), ","));
  }
  if (schedule.has_boundary_step()) {
    absl::StrAppend(&text, ", low noise from step ", schedule.boundary_step() + 1);
  }
  return text;
}

// Appends a line with the factor of a LoRA's file, and a second line if parts of the file were left
// out.
void AppendLora(const wan::v1::Model& model, const wan::v1::Lora& lora,
                const wan::v1::Lora::Part& part, std::string& text) {
  const std::string subject =
      absl::StrCat(Printable(model.name()), " LoRA ", Printable(lora.name()),
                   part.expert() == "only" ? "" : absl::StrCat("@", part.expert()), ": ");
  const std::string kinds = Printable(absl::StrJoin(part.kinds(), ", "));
  absl::StrAppend(&text, subject, kinds == "LoRA" || kinds.empty() ? "" : kinds + ", ",
                  part.tensors(), " tensors");
  if (part.has_min_factor()) {
    absl::StrAppend(&text, ", rank ", part.rank(), ", factor ", part.min_factor());
    if (part.max_factor() != part.min_factor()) absl::StrAppend(&text, " to ", part.max_factor());
  }
  absl::StrAppend(&text, ", ", Printable(part.path()), "\n");
  if (part.left_out_count() == 0) return;
  constexpr int kShown = 3;
  std::vector<std::string> shown;
  for (int i = 0; i < std::min(part.left_out_tensors_size(), kShown); ++i) {
    shown.push_back(Printable(part.left_out_tensors(i)));
  }
  absl::StrAppend(&text, subject, part.left_out_count(),
                  " tensors were left out, for which the model has no place: ",
                  absl::StrJoin(shown, ", "), part.left_out_count() > kShown ? ", ..." : "", "\n");
}

}  // namespace

std::string LorasText(const wan::v1::GenerationRequest& request) {
  std::vector<std::string> parts;
  for (const wan::v1::LoraScale& lora : request.loras()) {
    const double scale = lora.has_scale() ? lora.scale() : 1;
    if (lora.has_high_scale() || lora.has_low_scale()) {
      parts.push_back(absl::StrCat(lora.name(), " x ",
                                   lora.has_high_scale() ? lora.high_scale() : scale, "/",
                                   lora.has_low_scale() ? lora.low_scale() : scale, " (high/low)"));
    } else {
      parts.push_back(scale == 1 ? lora.name() : absl::StrCat(lora.name(), " x ", scale));
    }
  }
  return absl::StrJoin(parts, ", ");
}

std::string LoraLines(const wan::v1::Model& model) {
  std::string text;
  for (const wan::v1::Lora& lora : model.loras()) {
    for (const wan::v1::Lora::Part& part : lora.parts()) AppendLora(model, lora, part, text);
    if (!lora.has_schedule()) continue;
    absl::StrAppend(&text, Printable(model.name()), " LoRA ", Printable(lora.name()), ": ",
                    ScheduleText(lora.schedule()),
                    lora.schedule_recognised() ? ", recognised from its files" : "", "\n");
  }
  for (const wan::v1::SkippedLora& skipped : model.skipped_loras()) {
    absl::StrAppend(&text, Printable(model.name()), " LoRA ", Printable(skipped.name()),
                    " was skipped: ", Printable(skipped.error().message()), "\n");
  }
  return text;
}

}  // namespace wan::client
