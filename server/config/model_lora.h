// Reads and writes LoRAs as the settings have them: "[MODEL/]NAME[@EXPERT]=PATH".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/lora.h"

namespace wan::server {

// A LoRA and the name of its model. Whether that model exists is checked by AssignLoras.
struct ModelLora {
  std::string model;  // empty: the only model that there is
  LoraSource source;
};

// Whether a model or LoRA may have this name: 1 to 63 letters, digits, '.', '_' and '-'.
bool IsName(std::string_view name);

// The message of INVALID_ARGUMENT continues a sentence that begins with the setting's name: "is
// 'x'; must be ...".
absl::StatusOr<ModelLora> ParseModelLora(std::string_view text);
std::string ToString(const ModelLora& lora);

// Replaces ModelSpec::loras of every model by its share of `loras`. INVALID_ARGUMENT if a LoRA
// names an unknown model, or names none while there are several.
absl::Status AssignLoras(const std::vector<ModelLora>& loras, std::vector<ModelSpec>& models);

}  // namespace wan::server
