#include "engine/device/device_probe.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/util/Exception.h>

#include <array>
#include <atomic>

#include "absl/strings/str_format.h"
#include "engine/device/plugin_loader.h"

namespace wan {
namespace {

// The maximum number of bytes that cuBLAS and cuDNN allocate at once outside of LibTorch's
// allocator.
constexpr size_t kShortBytes = size_t{256} << 20;
constexpr double kGiB = 1 << 30;

class TorchDeviceProbe final : public DeviceProbe {
 public:
  std::optional<std::string> FindProblem() override {
    const CudaPlugin* const plugin = LoadedCudaPlugin();
    if (plugin == nullptr) return std::nullopt;
    std::array<char, 256> text{};
    if (plugin->find_problem(Index(), text.data(), text.size()) == 0) return std::nullopt;
    return std::string(text.data());
  }

  int64_t RefusedAllocations() override {
    if (LoadedCudaPlugin() == nullptr) return 0;
    try {
      return at::accelerator::getDeviceStats(static_cast<c10::DeviceIndex>(Index())).num_ooms;
    } catch (const c10::Error&) {
      return 0;  // LibTorch's allocator was not set up yet
    }
  }

  bool MemoryIsShort() override {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    return ReadMemory(free_bytes, total_bytes) && free_bytes < kShortBytes;
  }

  std::string DescribeMemory() override {
    size_t free_bytes = 0;
    size_t total_bytes = 0;
    if (!ReadMemory(free_bytes, total_bytes)) return "";
    int64_t reserved = 0;
    try {
      reserved = at::accelerator::getDeviceStats(static_cast<c10::DeviceIndex>(Index()))
                     .reserved_bytes[0]
                     .current;
    } catch (const c10::Error&) {
      // Ignore the error: no memory was allocated yet, so `reserved` is 0.
    }
    return absl::StrFormat(
        "GPU %d has %.1f GiB free of %.1f GiB; LibTorch's allocator in this process holds %.1f "
        "GiB, the driver and other processes hold %.1f GiB",
        Index(), static_cast<double>(free_bytes) / kGiB, static_cast<double>(total_bytes) / kGiB,
        static_cast<double>(reserved) / kGiB,
        (static_cast<double>(total_bytes - free_bytes) - static_cast<double>(reserved)) / kGiB);
  }

 private:
  static int Index() { return at::accelerator::getDeviceIndex(); }

  static bool ReadMemory(size_t& free_bytes, size_t& total_bytes) {
    const CudaPlugin* const plugin = LoadedCudaPlugin();
    return plugin != nullptr && plugin->memory_info(Index(), &free_bytes, &total_bytes) == 0;
  }
};

std::atomic<DeviceProbe*> test_probe = nullptr;

}  // namespace

DeviceProbe& CurrentDeviceProbe() {
  static TorchDeviceProbe probe;
  DeviceProbe* const other = test_probe;
  return other == nullptr ? probe : *other;
}

ScopedDeviceProbe::ScopedDeviceProbe(DeviceProbe& probe) { test_probe = &probe; }
ScopedDeviceProbe::~ScopedDeviceProbe() { test_probe = nullptr; }

}  // namespace wan
