// Turns the exceptions of LibTorch and its libraries into statuses. No other code catches these
// exceptions.
#pragma once

#include <c10/core/Device.h>

#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "engine/api/errors.h"  // declares the reasons of these statuses

namespace wan {

// Carries a status through code that can report errors only by exceptions, as LibTorch does.
// `status` must not be OK.
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

// Runs `work` without autograd, and returns the status that `work` returns. If `work` throws, the
// exception becomes a status whose message begins with `doing`:
//
//   RESOURCE_EXHAUSTED (OUT_OF_MEMORY)  device or host memory ran out, whoever noticed: an
//                                       allocator, a kernel that was loaded late, cuBLAS, cuDNN
//   UNAVAILABLE (DEVICE_LOST)           the device no longer works for this process; the device
//                                       itself is asked, no error text decides this
//   its own status, unchanged           for a StatusException
//   INTERNAL                            everything else
//
// Call CatchTorchErrors on the thread that computes, because it examines that thread's device.
absl::Status CatchTorchErrors(std::string_view doing, const std::function<absl::Status()>& work);

// Returns unused blocks of LibTorch's allocator to the device, so that the next allocation can have
// any size. On a lost device the call does nothing.
void ReleaseCachedMemory(const c10::Device& device) noexcept;

// Waits until the device has finished all work that any thread has queued on it. Returns at once
// for a CPU, which queues nothing, and for a lost device, on which nothing runs.
void AwaitDevice(const c10::Device& device) noexcept;

}  // namespace wan
