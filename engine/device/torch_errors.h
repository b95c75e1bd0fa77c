// Where LibTorch's exceptions become statuses.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <string_view>

#include "absl/status/status.h"

namespace wan {

// Runs `work` without autograd. What it throws becomes a status that begins with `doing`:
// RESOURCE_EXHAUSTED with the reason OUT_OF_MEMORY where memory ends, of the device or the host,
// INTERNAL for everything else.
absl::Status CatchTorchErrors(std::string_view doing, const std::function<absl::Status()>& work);

// True for a status of CatchTorchErrors that says that memory ended.
bool IsOutOfMemory(const absl::Status& status);

// Gives blocks that nobody uses back to the device, so that whoever comes next can have them in any
// size.
void ReleaseCachedMemory(const c10::Device& device);

}  // namespace wan
