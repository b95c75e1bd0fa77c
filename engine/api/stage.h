// The stages of a job and of a model's loading, and the one name of each: that of the benchmark's
// reports, which is also on the wire, in logs and a metric label. Code decides by the types; names
// are only for what comes in and what goes out. All functions are pure and may be called from any
// thread.
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
  kStepLoading,  // once per denoising step
  // Inside kStepLoading: the job's LoRAs are merged into the weights on the device, or those of the
  // previous job are taken out.
  kLoraMerging,
  kStepInference,  // once per denoising step
  kVaeDecoding,
  kVideoEncoding,
  kQueueWait,
  kTotalExecution,
};

// One stage: a kind, and the denoising step that it belongs to. Implicit, because a kind that does
// not occur once per step is a stage by itself.
struct Stage {
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr Stage(StageKind stage_kind, int of_step = 0) : kind(stage_kind), step(of_step) {}

  StageKind kind;
  int step;  // from 0; always 0 except with kStepLoading and kStepInference

  // clang-tidy mistakes the 0 in comparisons with the result for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  friend constexpr auto operator<=>(const Stage&, const Stage&) = default;
};

// Returns the name of every stage of the kind, without the step number: "T5_Encoding",
// "Step_Inference".
std::string_view NameOf(StageKind kind);
// Returns the name of one stage: "T5_Encoding", "Step_3_Inference".
std::string NameOf(const Stage& stage);
// The inverse of NameOf(const Stage&); nullopt for any other text.
std::optional<Stage> ParseStage(std::string_view name);

}  // namespace wan
