// Reads the settings that scale a LoRA's factors where the file has no alpha of its own for a
// module. They are in PEFT's adapter_config.json, or in the metadata of the file, where diffusers
// puts them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/formats/tensor_file.h"

namespace wan {

class LoraAlpha {
 public:
  // Reads the settings of `file` from its metadata, or else from the adapter_config.json at
  // `config_path`, which may be empty. Without either, alpha is the rank. DATA_LOSS for settings of
  // the wrong types, UNIMPLEMENTED for adapters other than LoRA.
  static absl::StatusOr<LoraAlpha> Read(const TensorFile& file, const std::string& config_path);

  // Returns the factor of up * down: alpha / rank, or alpha / sqrt(rank) if it is rank-stabilised.
  // `stored` is the file's own alpha of the module. `module` has the name that the file uses.
  double Factor(std::string_view module, std::optional<double> stored, int64_t rank) const;

 private:
  struct Pattern {
    std::string module;  // the whole name, or its ending
    double alpha = 0;
  };

  bool rank_stabilised_ = false;
  std::optional<double> alpha_;
  std::vector<Pattern> patterns_;
};

}  // namespace wan
