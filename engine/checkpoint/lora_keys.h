// Parses the names of tensors in LoRA files. Trainers differ in them; docs/use/lora.md lists the
// styles.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// What a LoRA file's tensor does to the tensor that it changes.
enum class LoraPart {
  kDown,            // A, [rank, columns]: the factor that is applied to the input first
  kUp,              // B, [rows, rank]
  kUpBias,          // bias of B: added to the bias, scaled like the factors
  kAlpha,           // a scalar; divided by the rank or its root, it scales B A
  kDifference,      // added to the whole tensor
  kBiasDifference,  // added to the bias
  // Part of the image branch of Wan2.1's image-to-video models, which Wan2.2 does not have.
  kImageBranch,
};

struct LoraKey {
  // The canonical module name ("blocks.0.self_attn.q"), or tensor name for a tensor that is neither
  // weight nor bias ("blocks.0.modulation"). Empty if it is part of the image branch.
  std::string module;
  LoraPart part = LoraPart::kDown;

  friend auto operator<=>(const LoraKey&, const LoraKey&) = default;
};

// Finds the modules of one transformer by any of their spellings. Immutable and thread-safe.
class LoraKeyReader {
 public:
  explicit LoraKeyReader(const TransformerConfig& config);

  // Parses a key. INVALID_ARGUMENT if the key does not belong to this transformer, UNIMPLEMENTED
  // for adapters other than LoRA (DoRA, LoHa, LoKr, ...). The error message is to be appended to
  // the key.
  absl::StatusOr<LoraKey> Read(std::string_view key) const;

  // Returns the canonical name of the tensor that the key changes; empty if the module has no such
  // tensor.
  std::string TargetOf(const LoraKey& key) const;

  // Returns the shape of a tensor, given its canonical name.
  const std::vector<int64_t>& ShapeOf(const std::string& tensor) const;

 private:
  void AddSpelling(std::string_view spelling, const std::string& module);
  // Whether this is a flat module name of the image branch.
  bool IsImageBranch(std::string_view flat) const;
  absl::Status NoPart(std::string_view module) const;

  const int64_t num_layers_;
  std::map<std::string, std::vector<int64_t>, std::less<>>
      shapes_;  // shapes by canonical tensor name
  // Modules by every spelling, with dots replaced by underscores: trainers write either or mix
  // them, and no two modules differ in that alone.
  std::map<std::string, std::string, std::less<>> modules_;
};

}  // namespace wan
