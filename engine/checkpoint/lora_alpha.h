// Reads the settings that scale a LoRA's factors where the file has no alpha of its own for a
// module. They are in the metadata of the file, or in PEFT's adapter_config.json; docs/use/lora.md
// lists the names that trainers give them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// A pair of factors as the file has it.
struct LoraPair {
  std::string module;            // in the file's words
  int64_t rank = 1;              // of its matrices
  std::optional<double> stored;  // its own alpha, from a tensor of the file
};

class LoraAlpha {
 public:
  // Reads the settings of `file` from its metadata and from the adapter_config.json at
  // `config_path`, which may be empty. Without either, alpha is the rank. DATA_LOSS for settings of
  // the wrong types, and if two of them give different values; UNIMPLEMENTED for adapters other
  // than LoRA.
  static absl::StatusOr<LoraAlpha> Read(const TensorFile& file, const std::string& config_path);

  // Returns the factor of up * down: alpha / rank, or alpha / sqrt(rank) if it is rank-stabilised.
  double Factor(const LoraPair& pair) const;

  // Compares the settings with all pairs of the file. DATA_LOSS if not one of them has the alpha,
  // or not one the rank, that the settings give: then they belong to another file. Single pairs may
  // differ, as those of convolutions do.
  absl::Status CheckPairs(std::span<const LoraPair> pairs) const;

 private:
  // One value, and where it stands: "lora_alpha of its metadata".
  struct Setting {
    std::string where;
    double value = 0;
  };
  struct Pattern {
    std::string module;  // the whole name, or its ending
    double value = 0;

    friend bool operator==(const Pattern&, const Pattern&) = default;
  };
  class Reader;

  static std::optional<double> Match(const std::vector<Pattern>& patterns, std::string_view module);
  // The scale of a pair by the settings.
  std::optional<double> AlphaOf(const LoraPair& pair) const;
  std::optional<double> RankOf(const LoraPair& pair) const;

  std::string path_;
  bool rank_stabilised_ = false;
  // LyCORIS stores alpha * sqrt(rank) as a rank-stabilised module's alpha.
  bool stores_stabilised_ = false;
  std::optional<Setting> alpha_;
  std::optional<Setting> rank_;
  std::vector<Pattern> alpha_patterns_;
  std::vector<Pattern> rank_patterns_;
};

}  // namespace wan
