// LoRAs: how an operator registers them, how a request uses them, and how loaded ones are
// described. docs/use/lora.md is the manual.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/model_parts.h"

namespace wan {

// A file of a LoRA that an operator registers with a model. Two files with the same name form a
// pair, one per expert.
struct LoraSource {
  std::string name;                  // the name that requests use
  std::optional<ExpertRole> expert;  // unset: every expert of the model
  std::string path;                  // a safetensors file, or a folder that PEFT wrote

  friend bool operator==(const LoraSource&, const LoraSource&) = default;
};

inline constexpr double kMaxLoraScale = 10;
inline constexpr size_t kMaxLorasOfRequest = 8;

// A request's use of a LoRA: adds scale * alpha / rank * B A to the model's weights.
struct LoraScale {
  std::string name;
  double scale = 1;  // -kMaxLoraScale to kMaxLoraScale; 0 changes nothing

  friend bool operator==(const LoraScale&, const LoraScale&) = default;
};

// Describes the part of a loaded LoRA that changes one expert.
struct LoraPartDescription {
  ExpertRole expert = ExpertRole::kOnly;
  std::string path;     // path as registered
  int64_t rank = 0;     // largest rank; 0: it only adds whole tensors
  int64_t tensors = 0;  // number of weights that it changes
  // Smallest and largest alpha / rank of its pairs of matrices; absent if it has none.
  std::optional<double> min_factor;
  std::optional<double> max_factor;
  // Tensors of the file that the model has no place for, sorted by name.
  std::vector<std::string> left_out_tensors;
};

// Describes a LoRA of a resident model.
struct LoraDescription {
  std::string name;
  std::vector<LoraPartDescription> parts;
  uint64_t host_bytes = 0;  // host memory of all parts together
};

}  // namespace wan
