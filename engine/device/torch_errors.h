// Where LibTorch's exceptions become statuses.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "engine/api/errors.h"  // what the statuses are

namespace wan {

// Runs `work` without autograd. What it throws becomes a status whose message begins with `doing`:
//
//   RESOURCE_EXHAUSTED (OUT_OF_MEMORY)  memory ended, of the device or the host, whoever noticed:
//                                       an allocator, a kernel that was loaded late, cuBLAS, cuDNN
//   UNAVAILABLE (DEVICE_LOST)           the device works no more for this process; the device
//                                       itself was asked, no text decides it
//   INTERNAL                            everything else
//
// Call it on the thread that computes: the questions go to that thread's device.
absl::Status CatchTorchErrors(std::string_view doing, const std::function<absl::Status()>& work);

// Gives blocks that nobody uses back to the device, so that whoever comes next can have them in any
// size. Does nothing on a lost device.
void ReleaseCachedMemory(const c10::Device& device) noexcept;

}  // namespace wan
