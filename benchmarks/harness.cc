#include "benchmarks/harness.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>
#include <c10/util/Exception.h>

#include <cstdio>
#include <exception>

#include "engine/device/plugin_loader.h"
#include "engine/device/product_precision.h"

namespace wan {
namespace {

// Operators below this share of a trace are not listed.
constexpr double kLeastShare = 1e-3;

}  // namespace

std::optional<FrameSize> ParseSize(const std::string& text) {
  FrameSize size;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%ldx%ld%c", &size.width, &size.height, &rest) == 2) return size;
  std::fprintf(stderr, "--size is '%s', expected WIDTHxHEIGHT\n", text.c_str());
  return std::nullopt;
}

absl::StatusOr<at::Device> OpenDevice(const std::string& name) {
  const at::Device device(name);
  if (device.is_cpu()) return device;
  if (const auto plugin = LoadCudaPlugin(); !plugin.ok()) return plugin.status();
  at::globalContext().lazyInitDevice(device.type());
  at::accelerator::setDeviceIndex(device.index());
  AddProductsInFp32();
  return device;
}

void Synchronize(at::Device device) {
  if (!device.is_cpu()) at::accelerator::synchronizeDevice(device.index());
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Index 0 of the allocator's statistics: small and large pieces together.
int64_t CurrentBytes(at::Device device) {
  if (device.is_cpu()) return 0;
  return at::accelerator::getDeviceStats(device.index()).allocated_bytes[0].current;
}

int64_t PeakBytes(at::Device device) {
  if (device.is_cpu()) return 0;
  return at::accelerator::getDeviceStats(device.index()).allocated_bytes[0].peak;
}

void ResetPeakBytes(at::Device device) {
  if (!device.is_cpu()) at::accelerator::resetPeakStats(device.index());
}

void PrintMemory(at::Device device, int64_t resident) {
  if (device.is_cpu()) return;
  const int64_t peak = PeakBytes(device);
  std::printf("memory: resident %.2f GiB, peak %.2f GiB, activations %.2f GiB\n",
              static_cast<double>(resident) / kGiB, static_cast<double>(peak) / kGiB,
              static_cast<double>(peak - resident) / kGiB);
}

void PrintTrace(double seconds, const std::vector<OpTime>& times) {
  double sum = 0;
  for (const OpTime& time : times) sum += time.seconds;
  std::printf("traced: %.4f s, in operators %.4f s\n%9s %6s %6s  operator\n", seconds, sum, "ms",
              "share", "calls");
  for (const OpTime& time : times) {
    if (time.seconds < kLeastShare * sum) break;
    std::printf("%9.3f %5.1f%% %6ld  %s\n", time.seconds * 1e3, 100 * time.seconds / sum,
                static_cast<long>(time.calls), time.op.c_str());
  }
}

int ReportErrors(const std::function<absl::Status()>& run) {
  try {
    const absl::Status status = run();
    if (status.ok()) return 0;
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
  } catch (const c10::Error& error) {
    std::fprintf(stderr, "%s\n", error.what_without_backtrace());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return 1;
}

}  // namespace wan
