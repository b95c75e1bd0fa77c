// The stages of a job and of loading a model. Each stage has one name, taken from the benchmark's
// reports, which is used on the wire, in logs and in metric labels. Code compares these types;
// names are only for input and output. All functions are pure, and any thread may call them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace wan {

enum class StageKind {
  kModelInitialization,
  kTi2vPreprocess,
  kT2vPreprocess,
  kI2vPreprocess,
  kT5Encoding,
  kVaeEncoding,
  kStepLoading,  // this stage occurs once per denoising step
  // Part of kStepLoading: merges the job's LoRAs into weights that are on the device, or removes
  // the previous job's LoRAs.
  kLoraMerging,
  kStepInference,  // this stage occurs once per denoising step
  kVaeDecoding,
  kVideoEncoding,
  kQueueWait,
  kTotalExecution,
};

// One stage: a kind and, if the kind occurs once per step, the denoising step. The constructor is
// implicit, because a kind that does not occur per step is a stage by itself.
struct Stage {
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Stage(StageKind stage_kind, int of_step = 0) : kind(stage_kind), step(of_step) {}

  StageKind kind;
  int step;  // from 0; always 0 unless the kind is kStepLoading or kStepInference

  // clang-tidy mistakes the 0 in comparisons with the result for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend constexpr auto operator<=>(const Stage&, const Stage&) = default;
};

// Returns the name of a kind, without a step number: "T5_Encoding", "Step_Inference".
std::string_view NameOf(StageKind kind);
// Returns the name of one stage: "T5_Encoding", "Step_3_Inference".
std::string NameOf(const Stage& stage);
// Returns the stage with this name (see NameOf); nullopt for any other text.
std::optional<Stage> ParseStage(std::string_view name);

}  // namespace wan
