// Where LibTorch's exceptions become statuses.
#pragma once

#include <c10/core/Device.h>

#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "engine/api/errors.h"  // what the statuses are

namespace wan {

// Carries a status, which is not OK, out of code that throws as LibTorch does: where weights are
// brought to the device among others.
class StatusException final : public std::exception {
 public:
  explicit StatusException(absl::Status status)
      : status_(std::move(status)), message_(status_.ToString()) {}
  const absl::Status& status() const { return status_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  const absl::Status status_;
  const std::string message_;
};

// Runs `work` without autograd. What it throws becomes a status whose message begins with `doing`:
//
//   RESOURCE_EXHAUSTED (OUT_OF_MEMORY)  memory ended, of the device or the host, whoever noticed:
//                                       an allocator, a kernel that was loaded late, cuBLAS, cuDNN
//   UNAVAILABLE (DEVICE_LOST)           the device works no more for this process; the device
//                                       itself was asked, no text decides it
//   what it carries                     for a StatusException; its message stays as it is
//   INTERNAL                            everything else
//
// Call it on the thread that computes: the questions go to that thread's device.
absl::Status CatchTorchErrors(std::string_view doing, const std::function<absl::Status()>& work);

// Gives blocks that nobody uses back to the device, so that whoever comes next can have them in any
// size. Does nothing on a lost device.
void ReleaseCachedMemory(const c10::Device& device) noexcept;

}  // namespace wan
