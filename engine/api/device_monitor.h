// Counters of the machine and its GPU. A figure that cannot be measured is absent, never 0.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace wan {

// State of one device at one moment. Bytes, percent 0 to 100, watts, degrees Celsius, MHz.
struct DeviceSample {
  std::string device;  // "cpu" or "cuda:0"
  std::string name;    // for example "NVIDIA H200"
  std::optional<double> sm_activity_percent;
  std::optional<uint64_t> memory_used_bytes;
  std::optional<uint64_t> memory_total_bytes;
  std::optional<uint64_t> allocator_bytes;
  std::optional<double> power_watts;
  std::optional<double> temperature_celsius;
  std::optional<double> sm_clock_mhz;
  std::optional<double> memory_clock_mhz;
  std::optional<double> cpu_percent;
  std::optional<uint64_t> process_memory_bytes;
  std::optional<uint64_t> process_memory_peak_bytes;
};

// What a stretch of time used.
struct ResourceUsage {
  std::optional<uint64_t> gpu_memory_start_bytes;  // allocator
  std::optional<uint64_t> gpu_memory_end_bytes;
  std::optional<uint64_t> gpu_memory_peak_bytes;
  std::optional<uint64_t> gpu_memory_used_bytes;  // NVML, whole card, at the end
  std::optional<double> cpu_percent;              // mean over all cores of the machine
  std::optional<uint64_t> system_memory_used_bytes;
  std::optional<uint64_t> process_memory_peak_bytes;
  std::optional<double> sm_activity_percent;
};

// Open measurement; stretches may nest and overlap, also across threads.
class ResourceProbe {
 public:
  virtual ~ResourceProbe() = default;
  // Usage since the probe was started. Called once.
  virtual ResourceUsage Finish() = 0;
};

// Thread-safe.
class DeviceMonitor {
 public:
  virtual ~DeviceMonitor() = default;
  virtual std::unique_ptr<ResourceProbe> StartProbe() = 0;
  // One entry a device; the CPU first.
  virtual std::vector<DeviceSample> Sample() = 0;
};

}  // namespace wan
