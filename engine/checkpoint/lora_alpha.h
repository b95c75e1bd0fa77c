// Reads the settings that scale a LoRA's factors when a module has no alpha tensor of its own. They
// come from the file's metadata or from PEFT's adapter_config.json; docs/use/lora.md lists the
// names that trainers use.
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

// A pair of low-rank matrices in the file.
struct LoraPair {
  std::string module;            // module name as the file spells it
  int64_t rank = 1;              // rank of its matrices
  std::optional<double> stored;  // its own alpha, if the file has such a tensor
};

class LoraAlpha {
 public:
  // Reads the settings of `file` from its metadata and from the adapter_config.json at
  // `config_path`, which may be empty. If neither has settings, alpha equals the rank. DATA_LOSS
  // for settings of wrong types or two that contradict each other; UNIMPLEMENTED for adapters other
  // than LoRA.
  static absl::StatusOr<LoraAlpha> Read(const TensorFile& file, const std::string& config_path);

  // Returns the factor of up * down: alpha / rank, or alpha / sqrt(rank) for rank-stabilised LoRAs.
  double Factor(const LoraPair& pair) const;

  // Checks the settings against all pairs of the file. DATA_LOSS if no pair at all has the alpha,
  // or none the rank, of the settings: they belong to another file then. Some pairs may differ, for
  // example those of convolutions.
  absl::Status CheckPairs(std::span<const LoraPair> pairs) const;

 private:
  // A value and its source, for example "lora_alpha of its metadata".
  struct Setting {
    std::string where;
    double value = 0;
  };
  struct Pattern {
    std::string module;  // module name, or the end of one
    double value = 0;

    friend bool operator==(const Pattern&, const Pattern&) = default;
  };
  class Reader;

  static std::optional<double> Match(const std::vector<Pattern>& patterns, std::string_view module);
  // The alpha that the settings give for a pair.
  std::optional<double> AlphaOf(const LoraPair& pair) const;
  std::optional<double> RankOf(const LoraPair& pair) const;

  std::string path_;
  bool rank_stabilised_ = false;
  // LyCORIS stores alpha * sqrt(rank) instead of alpha for rank-stabilised modules.
  bool stores_stabilised_ = false;
  std::optional<Setting> alpha_;
  std::optional<Setting> rank_;
  std::vector<Pattern> alpha_patterns_;
  std::vector<Pattern> rank_patterns_;
};

}  // namespace wan
