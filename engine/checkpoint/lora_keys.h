// The names that tensors of LoRA files go by. Every trainer has its own; docs/lora.md lists them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// What a tensor of a LoRA file is to the tensor that it changes.
enum class LoraPart {
  kDown,            // A, [rank, columns]: the first of the two factors that the input meets
  kUp,              // B, [rows, rank]
  kUpBias,          // of B: an addition to the bias, scaled as the factors are
  kAlpha,           // the scalar that is divided by the rank, or by its root
  kDifference,      // an addition to the whole tensor
  kBiasDifference,  // an addition to the bias
};

struct LoraKey {
  // Canonical: "blocks.0.self_attn.q", or a tensor that is no module's weight or bias,
  // "blocks.0.modulation".
  std::string module;
  LoraPart part = LoraPart::kDown;

  friend auto operator<=>(const LoraKey&, const LoraKey&) = default;
};

// Knows the modules of one transformer under all their names.
class LoraKeyReader {
 public:
  explicit LoraKeyReader(const TransformerConfig& config);

  // INVALID_ARGUMENT for what is no part of this transformer, UNIMPLEMENTED for parts of adapters
  // other than LoRA (DoRA, LoHa, LoKr, ...). The message continues a sentence that begins with the
  // key.
  absl::StatusOr<LoraKey> Read(std::string_view key) const;

  // The tensor that a key changes: its canonical name; empty if the module has no such tensor.
  std::string TargetOf(const LoraKey& key) const;

  // Of a canonical tensor.
  const std::vector<int64_t>& ShapeOf(const std::string& tensor) const;

 private:
  void AddSpelling(const std::string& spelling, const std::string& module);
  absl::Status NoPart(std::string_view module) const;

  const int64_t num_layers_;
  std::map<std::string, std::vector<int64_t>, std::less<>> shapes_;  // by canonical tensor
  std::map<std::string, std::string, std::less<>> modules_;          // by every dotted spelling
  std::map<std::string, std::string, std::less<>> flat_modules_;     // the same with underscores
};

}  // namespace wan
