// LoRAs: what an operator registers with a model, what a request takes of them, and what they are
// once loaded. docs/lora.md is the manual.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wan {

// A file of a model's LoRA. Two files of one name are a pair, one for each of two experts.
struct LoraSource {
  std::string name;    // as requests call it
  std::string expert;  // "high" or "low"; empty: every expert of the model
  std::string path;    // a safetensors file, or a folder as PEFT writes it

  friend bool operator==(const LoraSource&, const LoraSource&) = default;
};

inline constexpr double kMaxLoraScale = 10;
inline constexpr size_t kMaxLorasOfRequest = 8;

// A request's use of a LoRA: scale * alpha / rank * B A is added to the weights.
struct LoraScale {
  std::string name;
  double scale = 1;  // -kMaxLoraScale to kMaxLoraScale; 0 changes nothing

  friend bool operator==(const LoraScale&, const LoraScale&) = default;
};

// What one expert has of a loaded LoRA.
struct LoraPartDescription {
  std::string expert;   // "only", or "high" and "low"
  std::string path;     // as registered
  int64_t rank = 0;     // the largest; 0: it adds whole tensors alone
  int64_t tensors = 0;  // that it changes
};

struct LoraDescription {
  std::string name;
  std::vector<LoraPartDescription> parts;
  uint64_t host_bytes = 0;  // host memory held, by all parts
};

}  // namespace wan
