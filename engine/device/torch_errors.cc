#include "engine/device/torch_errors.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "engine/device/device_probe.h"

namespace wan {
namespace {

// The number of cudaErrorMemoryAllocation, as LibTorch passes it on.
constexpr int32_t kCudaOutOfMemory = 2;

template <size_t n>
bool HasOneOf(std::string_view message, const std::array<std::string_view, n>& texts) {
  return std::any_of(texts.begin(), texts.end(), [&](std::string_view text) {
    return message.find(text) != std::string_view::npos;
  });
}

// Returns whether the message has a text that always means that memory ran out.
bool SaysOutOfMemory(std::string_view message) {
  static constexpr std::array<std::string_view, 5> kTexts = {
      "can't allocate memory",  // written by LibTorch's CPU allocator
      "out of memory",          // written by CUDA's runtime and driver
      "ALLOC_FAILED",           // written by cuBLAS, and by cuDNN up to version 8
      "ALLOCATION_FAILED",      // written by cuDNN 9 and later, for device and host memory
      "std::bad_alloc",         // an exception that LibTorch rethrows
  };
  return HasOneOf(message, kTexts);
}

// Returns whether the message has a text that may mean that a library had no memory for a handle or
// a workspace. Such an error may also have another cause.
bool MayMeanOutOfMemory(std::string_view message) {
  static constexpr std::array<std::string_view, 5> kTexts = {
      "CUBLAS_STATUS_NOT_INITIALIZED", "CUBLAS_STATUS_INTERNAL_ERROR", "CUDNN_STATUS_",
      "unable to find an engine", "CUSOLVER_STATUS_"};
  return HasOneOf(message, kTexts);
}

absl::Status OutOfMemory(const std::string& message) {
  const std::string memory = CurrentDeviceProbe().DescribeMemory();
  return OutOfMemoryError(memory.empty() ? message : absl::StrCat(message, " (", memory, ")"));
}

// Returns the status for an exception whose type alone does not say that memory ran out.
absl::Status Diagnose(const std::string& prefix, const std::string& message, bool out_of_memory,
                      int64_t refused_before) {
  DeviceProbe& probe = CurrentDeviceProbe();
  if (const std::optional<std::string> problem = probe.FindProblem()) {
    return DeviceLostError(absl::StrCat(prefix, "the device no longer works: ", *problem,
                                        "; the failed call said: ", message));
  }
  if (out_of_memory || SaysOutOfMemory(message) ||
      (MayMeanOutOfMemory(message) &&
       (probe.RefusedAllocations() > refused_before || probe.MemoryIsShort()))) {
    return OutOfMemory(absl::StrCat(prefix, "out of memory: ", message));
  }
  return absl::InternalError(prefix + message);
}

}  // namespace

absl::Status CatchTorchErrors(std::string_view doing, const std::function<absl::Status()>& work) {
  const std::string prefix = absl::StrCat(std::string(doing), ": ");
  const int64_t refused = CurrentDeviceProbe().RefusedAllocations();
  try {
    const c10::InferenceMode inference_mode;
    return work();
  } catch (const StatusException& error) {
    return error.status();
  } catch (const c10::OutOfMemoryError& error) {
    return OutOfMemory(absl::StrCat(prefix, "out of memory: ", error.what_without_backtrace()));
  } catch (const c10::AcceleratorError& error) {
    return Diagnose(prefix, error.what_without_backtrace(),
                    error.get_error_code() == kCudaOutOfMemory, refused);
  } catch (const c10::Error& error) {
    return Diagnose(prefix, error.what_without_backtrace(), false, refused);
  } catch (const std::bad_alloc&) {
    return OutOfMemory(absl::StrCat(prefix, "out of memory: the host has none left"));
  } catch (const std::exception& error) {
    return Diagnose(prefix, error.what(), false, refused);
  }
}

void ReleaseCachedMemory(const c10::Device& device) noexcept {
  if (device.is_cpu()) return;
  try {
    at::accelerator::emptyCache();
  } catch (const c10::Error&) {
    // Ignore the error: the call fails only if the device is lost, which the next computation
    // reports.
  }
}

void AwaitDevice(const c10::Device& device) noexcept {
  if (device.is_cpu()) return;
  try {
    at::accelerator::synchronizeDevice(device.index());
  } catch (const c10::Error&) {
    // Ignore the error: the call fails only if the device is lost.
  }
}

}  // namespace wan
