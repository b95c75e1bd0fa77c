// Counters of the machine and its GPUs. A figure that cannot be measured is absent, never 0.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace wan {

// The state of one device at one moment. Percentages run from 0 to 100.
struct DeviceSample {
  std::string device;  // "cpu" or "cuda:N"
  std::string name;    // for example "NVIDIA H200"
  std::optional<double> sm_activity_percent;
  std::optional<uint64_t> memory_used_bytes;
  std::optional<uint64_t> memory_total_bytes;
  std::optional<uint64_t> allocator_bytes;
  std::optional<double> power_watts;
  std::optional<double> temperature_celsius;
  std::optional<double> sm_clock_mhz;
  std::optional<double> memory_clock_mhz;
  std::optional<double> cpu_percent;          // mean over all cores of the machine
  std::optional<double> process_cpu_percent;  // the part of it that this process used
  std::optional<uint64_t> process_memory_bytes;
  std::optional<uint64_t> process_memory_peak_bytes;
};

// The resources that the process used between the start of a probe and its Finish(). Percentages
// run from 0 to 100.
struct ResourceUsage {
  // The first three are the allocator's view: memory that tensors of this process held.
  std::optional<uint64_t> gpu_memory_start_bytes;
  std::optional<uint64_t> gpu_memory_end_bytes;
  std::optional<uint64_t> gpu_memory_peak_bytes;
  // NVML's view at the end: the whole card, with all of its processes.
  std::optional<uint64_t> gpu_memory_used_bytes;
  std::optional<double> cpu_percent;          // mean over all cores of the machine
  std::optional<double> process_cpu_percent;  // the part of it that this process used
  std::optional<uint64_t> system_memory_used_bytes;
  std::optional<uint64_t> process_memory_peak_bytes;
  std::optional<double> sm_activity_percent;
};

// A running measurement. Measurements may nest and overlap, on one thread and across threads.
class ResourceProbe {
 public:
  virtual ~ResourceProbe() = default;
  // Ends the measurement and returns the usage since the probe was started. Call it at most once;
  // any thread may do so.
  virtual ResourceUsage Finish() = 0;
};

// All methods are thread-safe.
class DeviceMonitor {
 public:
  virtual ~DeviceMonitor() = default;
  // Starts a measurement. The monitor must outlive the probe.
  virtual std::unique_ptr<ResourceProbe> StartProbe() = 0;
  // Reads the counters now. Returns one entry for each device, the CPU first.
  virtual std::vector<DeviceSample> Sample() = 0;
};

}  // namespace wan
