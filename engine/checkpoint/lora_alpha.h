// Reads the settings by which a LoRA's factors are scaled if a module has no alpha tensor of its
// own. The settings are in the file's metadata or in PEFT's adapter_config.json; docs/use/lora.md
// lists the names that trainers use.
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

// A pair of low-rank matrices in a LoRA file.
struct LoraPair {
  std::string module;            // the module's name, as the file spells it
  int64_t rank = 1;              // rank of the two matrices
  std::optional<double> stored;  // the module's own alpha, if the file has a tensor for it
};

class LoraAlpha {
 public:
  // Reads the settings of `file` from its metadata and from the adapter_config.json at
  // `config_path`, which may be empty. If neither has any settings, alpha equals the rank.
  // DATA_LOSS if settings have wrong types or contradict each other; UNIMPLEMENTED if the file
  // holds an adapter other than LoRA, LoHa and LoKr.
  static absl::StatusOr<LoraAlpha> Read(const TensorFile& file, const std::string& config_path);

  // Returns the factor of the product up * down: alpha / rank, or alpha / sqrt(rank) for
  // rank-stabilised LoRAs.
  double Factor(const LoraPair& pair) const;

  // Returns the factor of a LoKr whose two sides are both whole matrices, which gives no rank to
  // divide by: 1, or alpha / rank if PEFT's settings have both.
  double FactorWithoutRank(const std::string& module) const;

  // Returns where the settings say that the file holds a DoRA, for example "use_dora of ..."; empty
  // if they do not.
  const std::string& dora_setting() const { return dora_setting_; }

  // Checks the settings against all pairs of the file. DATA_LOSS if no pair at all has the alpha,
  // or no pair the rank, that the settings give: then the settings belong to another file. Some
  // pairs may differ from the settings, as pairs of convolutions do.
  absl::Status CheckPairs(std::span<const LoraPair> pairs) const;

 private:
  // The value of a setting, and the place of the setting, for example "lora_alpha of its metadata".
  struct Setting {
    std::string where;
    double value = 0;
  };
  struct Pattern {
    std::string module;  // the name of a module, or its end
    double value = 0;

    friend bool operator==(const Pattern&, const Pattern&) = default;
  };
  class Reader;

  static std::optional<double> Match(const std::vector<Pattern>& patterns, std::string_view module);
  // Returns the alpha that the settings give for a pair.
  std::optional<double> AlphaOf(const LoraPair& pair) const;
  std::optional<double> RankOf(const LoraPair& pair) const;

  std::string path_;
  std::string dora_setting_;
  bool is_lokr_ = false;  // whether PEFT's settings are for a LoKr
  bool rank_stabilised_ = false;
  // Whether LyCORIS wrote the file; it stores alpha * sqrt(rank) in place of alpha for
  // rank-stabilised modules.
  bool stores_stabilised_ = false;
  std::optional<Setting> alpha_;
  std::optional<Setting> rank_;
  std::vector<Pattern> alpha_patterns_;
  std::vector<Pattern> rank_patterns_;
};

}  // namespace wan
