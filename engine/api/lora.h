// LoRAs: how an operator registers them, how a request uses them, and how loaded ones are
// described. docs/use/lora.md is the manual for users.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/api/model_parts.h"

namespace wan {

// The sampling for which a LoRA was distilled. The schedule fills in the unset fields of requests
// that use the LoRA (engine/planning/lora_schedule.h).
struct LoraSchedule {
  int steps = 0;  // 0: no schedule
  // The noise levels, as in GenerationRequest::sigmas; empty: the levels are evenly spaced.
  std::vector<double> sigmas;
  std::optional<double> shift;               // unset: the model's default shift
  std::vector<double> guidance_scale = {1};  // as GenerationRequest::guidance_scale
  // The first step of the low-noise expert; unset: the noise level decides.
  std::optional<int> boundary_step;

  friend bool operator==(const LoraSchedule&, const LoraSchedule&) = default;
};

// A LoRA's file that an operator registers with a model. Two files with the same name form a pair:
// one file for each of two experts.
struct LoraSource {
  std::string name;                  // the name that requests use
  std::optional<ExpertRole> expert;  // unset: every expert of the model
  std::string path;                  // path of a safetensors file, or of a folder that PEFT wrote
  // The LoRA's schedule, which all its files share. Unset: the LoRA has the schedule of its other
  // file, or the schedule of the published LoRA as which it is recognised. With 0 steps the LoRA
  // has no schedule, even if it is recognised.
  std::optional<LoraSchedule> schedule = {};
  // Whether the server found the file in a folder of LoRAs. If the engine refuses a found file, it
  // loads the model without that file (ModelDescription::skipped_loras).
  bool found = false;

  friend bool operator==(const LoraSource&, const LoraSource&) = default;
};

inline constexpr double kMaxLoraScale = 10;
inline constexpr size_t kMaxLorasOfRequest = 8;

// A LoRA that a request uses. The LoRA adds scale * alpha / rank * B A to the model's weights.
struct LoraScale {
  std::string name;
  double scale = 1;  // from -kMaxLoraScale to kMaxLoraScale; 0 changes nothing
  // The scales for the experts of a model that has two; unset: `scale`.
  std::optional<double> high_scale = {};
  std::optional<double> low_scale = {};

  // Returns the scale for an expert.
  double For(ExpertRole expert) const {
    if (expert == ExpertRole::kHighNoise) return high_scale.value_or(scale);
    if (expert == ExpertRole::kLowNoise) return low_scale.value_or(scale);
    return scale;
  }

  friend bool operator==(const LoraScale&, const LoraScale&) = default;
};

// Describes the part of a loaded LoRA that changes one expert.
struct LoraPartDescription {
  ExpertRole expert = ExpertRole::kOnly;
  std::string path;     // the path that the operator registered
  int64_t rank = 0;     // largest rank of the part's matrices; 0: the part only adds whole tensors
  int64_t tensors = 0;  // number of weights that the part changes
  // The smallest and the largest alpha / rank of the part's pairs of matrices; absent without
  // pairs.
  std::optional<double> min_factor;
  std::optional<double> max_factor;
  // Tensors in the file for which the model has no place, sorted by name.
  std::vector<std::string> left_out_tensors;
  // The kinds of changes: "LoRA", "LoHa", "LoKr", "DoRA", "difference"; a DoRA has two entries.
  std::vector<std::string> kinds = {};
};

// Describes one LoRA of a resident model.
struct LoraDescription {
  std::string name;
  std::vector<LoraPartDescription> parts;
  uint64_t host_bytes = 0;  // bytes of host memory that all parts take together
  std::optional<LoraSchedule> schedule;
  bool is_recognised = false;  // whether the schedule was recognised from the files
};

// A file in a folder of LoRAs that the engine refused, so that the model is loaded without it.
struct SkippedLora {
  std::string name;
  std::string path;
  absl::Status error;
};

}  // namespace wan
