// Changes the list of a model's LoRAs.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "engine/api/lora.h"
#include "server/conversion/convert.h"

namespace wan::server {

// Returns the LoRAs that somebody has registered, without those that the server found.
std::vector<LoraSource> Registered(const std::vector<LoraSource>& loras);

// Applies the edits to the registered LoRAs `loras`. INVALID_ARGUMENT with a violation for each
// name to remove that is not among them; `found` says which names the server has found in folders.
absl::Status Edit(const LoraEdits& edits, const std::vector<LoraSource>& found,
                  std::vector<LoraSource>& loras);

// Adds the LoRAs that were found to those that are registered; of two with one name, the registered
// one stays.
void AddFound(const std::vector<LoraSource>& found, std::vector<LoraSource>& loras);

// Whether `loras` has all of `former`, unchanged, so that jobs that need them can still run. A LoRA
// has changed if one of its experts has got a file.
bool Extends(const std::vector<LoraSource>& loras, const std::vector<LoraSource>& former);

}  // namespace wan::server
