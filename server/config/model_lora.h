// Parses LoRAs in the form of the settings, "[MODEL/]NAME[@EXPERT]=PATH", and writes them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/lora.h"

namespace wan::server {

// A LoRA and the name of the model that it belongs to; AssignLoras checks that the model exists.
struct ModelLora {
  std::string model;  // empty: the LoRA belongs to the only model
  LoraSource source;
};

// Whether the name is valid for a model or LoRA: 1 to 63 letters, digits, '.', '_' and '-'.
bool IsName(std::string_view name);

// The message of INVALID_ARGUMENT continues a sentence that begins with the setting's name: "is
// 'x'; must be ...".
absl::StatusOr<ModelLora> ParseModelLora(std::string_view text);
std::string ToString(const ModelLora& lora);

// Sets ModelSpec::loras of every model to those of `loras` that belong to the model. Fails with
// INVALID_ARGUMENT if a LoRA names an unknown model, or names none while there are several.
absl::Status AssignLoras(const std::vector<ModelLora>& loras, std::vector<ModelSpec>& models);

}  // namespace wan::server
