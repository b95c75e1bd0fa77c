// LoRAs: how an operator registers them, how a request uses them, and how loaded ones are
// described. docs/use/lora.md is the manual for users.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/model_parts.h"

namespace wan {

// A LoRA's file that an operator registers with a model. Two files with the same name form a pair,
// one for each of two experts.
struct LoraSource {
  std::string name;                  // the name that requests use
  std::optional<ExpertRole> expert;  // unset: every expert of the model
  std::string path;                  // path of a safetensors file, or of a folder that PEFT wrote

  friend bool operator==(const LoraSource&, const LoraSource&) = default;
};

inline constexpr double kMaxLoraScale = 10;
inline constexpr size_t kMaxLorasOfRequest = 8;

// A LoRA that a request uses. The LoRA adds scale * alpha / rank * B A to the model's weights.
struct LoraScale {
  std::string name;
  double scale = 1;  // from -kMaxLoraScale to kMaxLoraScale; 0 changes nothing

  friend bool operator==(const LoraScale&, const LoraScale&) = default;
};

// Describes the part of a loaded LoRA that changes one expert.
struct LoraPartDescription {
  ExpertRole expert = ExpertRole::kOnly;
  std::string path;     // the path that the operator registered
  int64_t rank = 0;     // largest rank of its matrices; 0: it only adds whole tensors
  int64_t tensors = 0;  // number of weights that it changes
  // The smallest and the largest alpha / rank of its pairs of matrices; absent if it has no pairs.
  std::optional<double> min_factor;
  std::optional<double> max_factor;
  // Tensors in the file for which the model has no place, sorted by name.
  std::vector<std::string> left_out_tensors;
};

// Describes one LoRA of a resident model.
struct LoraDescription {
  std::string name;
  std::vector<LoraPartDescription> parts;
  uint64_t host_bytes = 0;  // bytes of host memory that all parts take together
};

}  // namespace wan
