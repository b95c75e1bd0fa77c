// LoRAs in the settings: "[MODEL/]NAME[@EXPERT]=PATH".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/lora.h"

namespace wan::server {

// A model's LoRA, before it is known which models there are.
struct ModelLora {
  std::string model;  // empty: the only one
  LoraSource source;
};

// 1 to 63 letters, digits, '.', '_' and '-': what models and LoRAs may be called.
bool IsName(std::string_view name);

// INVALID_ARGUMENT continues a sentence that begins with the setting's name: "is 'x', must be ...".
absl::StatusOr<ModelLora> ParseModelLora(std::string_view text);
std::string ToString(const ModelLora& lora);

// Gives each model its LoRAs. INVALID_ARGUMENT for one of an unknown model, or that does not say
// which of several.
absl::Status AssignLoras(const std::vector<ModelLora>& loras, std::vector<ModelSpec>& models);

}  // namespace wan::server
