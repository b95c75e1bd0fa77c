// Parses the names (keys) of tensors in LoRA files. Every trainer has its own style of keys;
// docs/use/lora.md lists the styles.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// How a tensor of a LoRA file changes its target.
enum class LoraPart {
  kDown,            // A, [rank, columns]: the factor that the input is multiplied with first
  kUp,              // B, [rows, rank]: the second factor
  kUpBias,          // bias of B: added to the bias, scaled like the factors
  kAlpha,           // a scalar; divided by the rank or the root of the rank, it scales B A
  kDifference,      // a difference that is added to the whole tensor
  kBiasDifference,  // a difference that is added to the bias
  kMagnitude,       // DoRA's magnitude: the length that each row or column of the changed weight
                    // gets
  // LoHa: the factors of its two products, which are multiplied element by element.
  kFirstUp,     // [rows, rank]
  kFirstDown,   // [rank, columns]
  kSecondUp,    // [rows, rank]
  kSecondDown,  // [rank, columns]
  // LoKr: the two sides of its Kronecker product. Each side is one whole matrix, or the product of
  // two factors.
  kLeft,
  kLeftUp,
  kLeftDown,
  kRight,
  kRightUp,
  kRightDown,
  // A part of the image branch of Wan2.1's image-to-video models, which Wan2.2 does not have.
  kImageBranch,
};

struct LoraKey {
  // The canonical name of the module ("blocks.0.self_attn.q"), or of the tensor if it is neither
  // weight nor bias ("blocks.0.modulation"). Empty if the key belongs to the image branch.
  std::string module;
  LoraPart part = LoraPart::kDown;

  friend auto operator<=>(const LoraKey&, const LoraKey&) = default;
};

// Recognises the modules of one transformer by all their spellings. Immutable and thread-safe.
class LoraKeyReader {
 public:
  explicit LoraKeyReader(const TransformerConfig& config);

  // Parses the key of a LoRA file. INVALID_ARGUMENT if the key does not belong to this transformer;
  // UNIMPLEMENTED if it belongs to an adapter of another kind (OFT, ...). The caller must put the
  // key before the error's message.
  absl::StatusOr<LoraKey> Read(std::string_view key) const;

  // Returns the name of the key's module as the file spells it, with its prefix.
  static std::string_view SpelledModule(std::string_view key);

  // Returns the canonical name of the tensor that the key changes; empty if the key's module has no
  // such tensor.
  std::string TargetOf(const LoraKey& key) const;

  // Returns the shape of the tensor with this canonical name.
  const std::vector<int64_t>& ShapeOf(const std::string& tensor) const;

 private:
  void AddSpelling(std::string_view spelling, const std::string& module);
  // Returns whether a module name with underscores belongs to the image branch.
  bool IsImageBranch(std::string_view flat) const;
  absl::Status NoPart(std::string_view module) const;

  const int64_t num_layers_;
  std::map<std::string, std::vector<int64_t>, std::less<>>
      shapes_;  // each tensor's shape, by its canonical name
  // The module for each spelling. Underscores replace the dots here, because trainers write dots,
  // underscores or a mix; no two modules differ only in these characters.
  std::map<std::string, std::string, std::less<>> modules_;
};

}  // namespace wan
