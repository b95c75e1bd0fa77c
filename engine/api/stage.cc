#include "engine/api/stage.h"

#include <array>
#include <cstddef>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace wan {
namespace {

constexpr std::string_view kStep = "Step_";

struct KindName {
  StageKind kind;
  std::string_view name;

  // For kinds that occur once per step, the step's number follows "Step_" in the name.
  bool has_step() const { return name.substr(0, kStep.size()) == kStep; }
};

constexpr std::array kKinds{
    KindName{StageKind::kModelInitialization, "Model_Initialization"},
    KindName{StageKind::kTi2vPreprocess, "TI2V_Preprocess"},
    KindName{StageKind::kT2vPreprocess, "T2V_Preprocess"},
    KindName{StageKind::kI2vPreprocess, "I2V_Preprocess"},
    KindName{StageKind::kT5Encoding, "T5_Encoding"},
    KindName{StageKind::kVaeEncoding, "VAE_Encoding"},
    KindName{StageKind::kStepLoading, "Step_Loading"},
    KindName{StageKind::kLoraMerging, "LoRA_Merging"},
    KindName{StageKind::kStepInference, "Step_Inference"},
    KindName{StageKind::kVaeDecoding, "VAE_Decoding"},
    KindName{StageKind::kVideoEncoding, "Video_Encoding"},
    KindName{StageKind::kQueueWait, "Queue_Wait"},
    KindName{StageKind::kTotalExecution, "Total_Execution"},
};

const KindName& Find(StageKind kind) {
  for (const KindName& known : kKinds) {
    if (known.kind == kind) return known;
  }
  return kKinds.back();
}

// Returns the step's number 3 for "3_Inference", if `suffix` is "Inference".
std::optional<int> ParseStep(std::string_view text, std::string_view suffix) {
  const size_t end = text.find('_');
  if (end == std::string_view::npos || text.substr(end + 1) != suffix) return std::nullopt;
  int step = 0;
  const absl::string_view digits(text.data(), end);
  // Accept the number only as NameOf writes it: without sign, space or leading zero.
  if (!absl::SimpleAtoi(digits, &step) || step < 0 || absl::StrCat(step) != digits) {
    return std::nullopt;
  }
  return step;
}

}  // namespace

std::string_view NameOf(StageKind kind) { return Find(kind).name; }

std::string NameOf(const Stage& stage) {
  const KindName& known = Find(stage.kind);
  std::string name(known.name);
  if (known.has_step()) name.insert(kStep.size(), absl::StrCat(stage.step, "_"));
  return name;
}

std::optional<Stage> ParseStage(std::string_view name) {
  for (const KindName& known : kKinds) {
    if (!known.has_step()) {
      if (name == known.name) return Stage(known.kind);
    } else if (name.substr(0, kStep.size()) == kStep) {
      const std::optional<int> step =
          ParseStep(name.substr(kStep.size()), known.name.substr(kStep.size()));
      if (step.has_value()) return Stage(known.kind, *step);
    }
  }
  return std::nullopt;
}

}  // namespace wan
