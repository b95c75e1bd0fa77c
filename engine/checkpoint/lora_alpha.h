// What a LoRA's factors are multiplied with where the file has no alpha of its own for a module:
// PEFT's adapter_config.json, or the same settings in the file's metadata, where diffusers puts
// them.
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
  // Settings of `file`: its metadata, or else the adapter_config.json at `config_path`, which may
  // be empty. Without either, alpha is the rank. DATA_LOSS for settings of the wrong types,
  // UNIMPLEMENTED for adapters other than LoRA.
  static absl::StatusOr<LoraAlpha> Read(const TensorFile& file, const std::string& config_path);

  // What up * down is multiplied with: alpha / rank, or alpha / sqrt(rank) if rank-stabilised.
  // `stored` is the file's own alpha of that module. `module` is named as in the file.
  double Factor(std::string_view module, std::optional<double> stored, int64_t rank) const;

 private:
  struct Pattern {
    std::string module;  // the whole name, or what it ends in
    double alpha = 0;
  };

  bool rank_stabilised_ = false;
  std::optional<double> alpha_;
  std::vector<Pattern> patterns_;
};

}  // namespace wan
