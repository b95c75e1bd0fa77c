// Parses LoRAs in the forms of the settings, "[MODEL/]NAME[@EXPERT]=PATH", "[MODEL/]NAME=SCHEDULE"
// and "[MODEL=]DIR", and writes them.
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

// A schedule of a LoRA, with the name of its model (empty: the only model, or in a folder of LoRAs
// every model) and its text.
struct LoraScheduleSetting {
  std::string model;
  std::string name;
  std::string text;
  LoraSchedule schedule;
};
// The errors are those of ParseModelLora.
absl::StatusOr<LoraScheduleSetting> ParseLoraScheduleSetting(std::string_view text);
std::string ToString(const LoraScheduleSetting& setting);

// A folder of LoRAs: "MODEL=DIR", or "DIR" for every model. If the text before the first '=' is not
// a valid name, the whole text is the path.
struct LoraFolderSetting {
  std::string model;  // empty: every model
  std::string path;
};
LoraFolderSetting ParseLoraFolder(std::string_view text);

// Sets LoraSource::schedule of the LoRAs in `models`. A schedule for a LoRA that is not in `models`
// must be for a LoRA in a folder. Fails with INVALID_ARGUMENT if there is such a schedule but no
// folder, or if a schedule names a model that is not in `models`.
absl::Status AssignSchedules(const std::vector<LoraScheduleSetting>& schedules, bool has_folders,
                             std::vector<ModelSpec>& models);

// Sets ModelSpec::loras of every model to those of `loras` that belong to the model. Fails with
// INVALID_ARGUMENT if a LoRA names an unknown model, or names none while there are several.
absl::Status AssignLoras(const std::vector<ModelLora>& loras, std::vector<ModelSpec>& models);

}  // namespace wan::server
