// The names of tensors in LoRA files. Every trainer has names of its own; docs/use/lora.md lists
// them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// The role of a tensor of a LoRA file for the tensor that it changes.
enum class LoraPart {
  kDown,            // A, [rank, columns]: the first of the two factors that the input meets
  kUp,              // B, [rows, rank]
  kUpBias,          // the bias of B: an addition to the bias, scaled like the factors
  kAlpha,           // the scalar that is divided by the rank, or by its root
  kDifference,      // an addition to the whole tensor
  kBiasDifference,  // an addition to the bias
  // Any part of the image branch of Wan2.1's image-to-video models, for which Wan2.2 has no place.
  kImageBranch,
};

struct LoraKey {
  // The canonical name: "blocks.0.self_attn.q", or that of a tensor that is not a weight or bias of
  // a module, "blocks.0.modulation". Empty for a part of the image branch.
  std::string module;
  LoraPart part = LoraPart::kDown;

  friend auto operator<=>(const LoraKey&, const LoraKey&) = default;
};

// Knows the modules of one transformer under all of their names. Immutable and thread-safe.
class LoraKeyReader {
 public:
  explicit LoraKeyReader(const TransformerConfig& config);

  // Parses a key. INVALID_ARGUMENT for a key that does not belong to this transformer,
  // UNIMPLEMENTED for parts of adapters other than LoRA (DoRA, LoHa, LoKr, ...). The message
  // continues a sentence that begins with the key.
  absl::StatusOr<LoraKey> Read(std::string_view key) const;

  // Returns the canonical name of the tensor that a key changes; empty if the module has no such
  // tensor.
  std::string TargetOf(const LoraKey& key) const;

  // Returns the shape of a tensor, given its canonical name.
  const std::vector<int64_t>& ShapeOf(const std::string& tensor) const;

 private:
  void AddSpelling(std::string_view spelling, const std::string& module);
  // Whether this is the flat name of a module of the image branch.
  bool IsImageBranch(std::string_view flat) const;
  absl::Status NoPart(std::string_view module) const;

  const int64_t num_layers_;
  std::map<std::string, std::vector<int64_t>, std::less<>> shapes_;  // by canonical tensor
  // By every spelling, with underscores for the dots: trainers write either, some write both in
  // one name, and no two modules differ in that alone.
  std::map<std::string, std::string, std::less<>> modules_;
};

}  // namespace wan
