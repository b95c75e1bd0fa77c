// Changes the list of a model's LoRAs.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "engine/api/lora.h"
#include "server/conversion/convert.h"

namespace wan::server {

// Returns the LoRAs that callers or settings have registered, without those that the server found
// in folders.
std::vector<LoraSource> Registered(const std::vector<LoraSource>& loras);

// Applies the edits to the registered LoRAs `loras`. Fails with INVALID_ARGUMENT and a violation
// for each name to remove that is not in `loras`; `found` has the LoRAs that the server has found
// in folders.
absl::Status Edit(const LoraEdits& edits, const std::vector<LoraSource>& found,
                  std::vector<LoraSource>& loras);

// Adds the LoRAs found in folders to the registered ones; if a name occurs in both, the registered
// LoRA stays.
void AddFound(const std::vector<LoraSource>& found, std::vector<LoraSource>& loras);

// Whether `loras` still has all of `former`, unchanged, so that jobs that need them can run. A LoRA
// also counts as changed if one of its experts has got a file.
bool Extends(const std::vector<LoraSource>& loras, const std::vector<LoraSource>& former);

}  // namespace wan::server
