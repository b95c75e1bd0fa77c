#include "engine/device/torch_errors.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <exception>
#include <new>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"

namespace wan {
namespace {

constexpr std::string_view kOutOfMemory = "OUT_OF_MEMORY";

absl::Status OutOfMemory(const std::string& message) {
  return WithReason(absl::ResourceExhaustedError(message), kOutOfMemory);
}

}  // namespace

absl::Status CatchTorchErrors(std::string_view doing, const std::function<absl::Status()>& work) {
  const std::string prefix = absl::StrCat(std::string(doing), ": ");
  try {
    const c10::InferenceMode inference_mode;
    return work();
  } catch (const c10::OutOfMemoryError& error) {
    return OutOfMemory(absl::StrCat(prefix, "out of memory: ", error.what_without_backtrace()));
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    // The CPU allocator, and libraries with allocators of their own, report it as a plain error.
    if (message.find("can't allocate memory") != std::string::npos ||
        message.find("ALLOC_FAILED") != std::string::npos) {
      return OutOfMemory(prefix + message);
    }
    return absl::InternalError(prefix + message);
  } catch (const std::bad_alloc&) {
    return OutOfMemory(prefix + "out of memory");
  } catch (const std::exception& error) {
    return absl::InternalError(prefix + error.what());
  }
}

bool IsOutOfMemory(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && ReasonOf(status) == kOutOfMemory;
}

void ReleaseCachedMemory(const c10::Device& device) {
  if (!device.is_cpu()) at::accelerator::emptyCache();
}

}  // namespace wan
