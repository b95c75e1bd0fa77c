#include "engine/pipeline/finite_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"

namespace wan {
namespace {

// Returns where in the job the values were computed: " of step 3 of 20 (stage Step_2_Inference,
// expert high)".
std::string PlaceOf(const GenerationPlan& plan, const Stage& stage) {
  if (stage.kind != StageKind::kStepInference) {
    return absl::StrCat(" (stage ", NameOf(stage), ")");
  }
  const ExpertRole expert = plan.steps[static_cast<size_t>(stage.step)].expert;
  const std::string named =
      expert == ExpertRole::kOnly ? "" : absl::StrCat(", expert ", std::string(NameOf(expert)));
  return absl::StrCat(" of step ", stage.step + 1, " of ", plan.steps.size(), " (stage ",
                      NameOf(stage), named, ")");
}

// Returns the LoRAs that affect the stage: "style with scale 0.8, light with scale 1".
std::string SuspectsOf(const GenerationPlan& plan, const Stage& stage) {
  // LoRAs change only transformers, which do not run before these stages end.
  if (stage.kind == StageKind::kT5Encoding || stage.kind == StageKind::kVaeEncoding) return "";
  std::vector<std::string> loras;
  for (const LoraScale& lora : plan.request.loras) {
    double scale = lora.scale;
    if (!plan.steps.empty()) {
      const bool is_step = stage.kind == StageKind::kStepInference;
      const auto last = plan.steps.size() - 1;
      scale = lora.For(plan.steps[is_step ? static_cast<size_t>(stage.step) : last].expert);
    }
    if (scale != 0) loras.push_back(absl::StrCat(lora.name, " with scale ", scale));
  }
  return absl::StrJoin(loras, ", ");
}

constexpr char kCheckpointAdvice[] =
    "a weight of the checkpoint is probably damaged: check its files with 'wan_inspect checkpoint' "
    "and compare their SHA-256 with the published ones";

}  // namespace

absl::Status NotFiniteIn(const GenerationPlan& plan, const Stage& stage, const std::string& what) {
  const std::string finding =
      absl::StrCat(what, PlaceOf(plan, stage), " are not finite: they hold NaN or infinity; ");
  const std::string suspects = SuspectsOf(plan, stage);
  if (suspects.empty()) {
    return NotFiniteError(absl::StrCat(finding, "no LoRA changes them, so ", kCheckpointAdvice));
  }
  return NotFiniteError(absl::StrCat(finding, "the job's LoRAs are ", suspects,
                                     ": try it without them, or with smaller scales; if it fails "
                                     "without them as well, ",
                                     kCheckpointAdvice));
}

void FiniteWatch::Look(const Stage& stage, std::string what, const at::Tensor& values) {
  std::unique_ptr<FiniteCheck> check;
  if (idle_.empty()) {
    check = std::make_unique<FiniteCheck>();
  } else {
    check = std::move(idle_.back());
    idle_.pop_back();
  }
  check->Begin(values);
  pending_.push_back({stage, std::move(what), std::move(check)});
}

absl::Status FiniteWatch::Verdict() {
  absl::Status verdict;
  for (Pending& look : pending_) {
    if (!look.check->IsFinite()) verdict.Update(NotFiniteIn(plan_, look.stage, look.what));
    idle_.push_back(std::move(look.check));
  }
  pending_.clear();
  return verdict;
}

}  // namespace wan
