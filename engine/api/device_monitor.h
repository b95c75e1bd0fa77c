// Counters of the machine and its GPUs. Figures that cannot be measured are absent, never 0.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace wan {

// A GPU's activity over an interval, from samples taken 20 times a second. All figures are absent
// if samples cover less than half of the interval. Percentages run from 0 to 100; "of the card"
// includes all processes.
struct GpuUsage {
  // Mean SM activity: from GPM if the card has it (absent for intervals below 0.1 s), otherwise the
  // share of time in which any kernel ran.
  std::optional<double> sm_activity_percent;
  std::optional<double>
      sm_occupancy_percent;  // resident warps; from GPM, like the next two figures
  std::optional<double> tensor_activity_percent;  // share of time in which tensor cores computed
  std::optional<double> dram_bandwidth_percent;   // share of the highest bandwidth
  // Energy and mean power of the whole card: from the energy counter if it was read often enough,
  // otherwise from the driver's power, which may be a mean of the last second. The peak is the
  // driver's highest power.
  std::optional<double> energy_joules;
  std::optional<double> power_watts;
  std::optional<double> power_peak_watts;
  std::optional<double> sm_clock_mhz;  // mean; the next one is the lowest
  std::optional<double> sm_clock_min_mhz;
  std::optional<double> memory_clock_mhz;
  std::optional<double> temperature_peak_celsius;
  // Reasons for reduced clocks in any sample (ThrottleReasonNames in engine/monitor/nvml.h),
  // sorted, and the time with any of them. Empty if the driver reports none.
  std::vector<std::string> throttle_reasons;
  std::optional<double> throttled_seconds;
  std::optional<int> processes;  // most processes with compute contexts, including this one
};

// A device's state at one moment. Percentages run from 0 to 100. Percentages, power and clocks are
// means since the reader's previous reading.
struct DeviceSample {
  std::string device;  // "cpu" or "cuda:N"
  std::string name;    // for example "NVIDIA H200"
  std::string uuid;    // "GPU-..."; empty if unknown or no GPU
  std::optional<double> sm_activity_percent;
  std::optional<uint64_t> memory_used_bytes;
  std::optional<uint64_t> memory_total_bytes;
  std::optional<uint64_t> allocator_bytes;
  std::optional<double> power_watts;
  std::optional<double> temperature_celsius;
  std::optional<double> sm_clock_mhz;
  std::optional<double> memory_clock_mhz;
  std::optional<double> cpu_percent;          // mean over all cores of the machine
  std::optional<double> process_cpu_percent;  // this process's part of it
  std::optional<uint64_t> process_memory_bytes;
  std::optional<uint64_t> process_memory_peak_bytes;
  std::optional<double> sm_occupancy_percent;
  std::optional<double> tensor_activity_percent;
  std::optional<double> dram_bandwidth_percent;
  std::vector<std::string> throttle_reasons;  // reasons in the reader's interval
  std::optional<int> processes;               // processes with compute contexts on the GPU
  // Sums since the monitor's construction: they only grow, so any number of readers may take
  // differences. They are the card's energy, the seconds in which SMs were active (the integral of
  // SM activity), and the seconds in which clocks were reduced, in total and by reason.
  std::optional<double> energy_joules;
  std::optional<double> sm_active_seconds;
  std::optional<double> throttled_seconds;
  std::map<std::string, double> throttled_seconds_by_reason;
};

// Resources that the process used between a probe's start and its Finish(). Percentages run from 0
// to 100.
struct ResourceUsage {
  // The first three are the allocator's view: memory of this process's tensors.
  std::optional<uint64_t> gpu_memory_start_bytes;
  std::optional<uint64_t> gpu_memory_end_bytes;
  std::optional<uint64_t> gpu_memory_peak_bytes;
  // NVML's view at the end: the whole card, including all processes.
  std::optional<uint64_t> gpu_memory_used_bytes;
  std::optional<double> cpu_percent;          // mean over all cores of the machine
  std::optional<double> process_cpu_percent;  // this process's part of it
  std::optional<uint64_t> system_memory_used_bytes;
  std::optional<uint64_t> process_memory_peak_bytes;
  std::optional<double> sm_activity_percent;
  // Most bytes that the allocator took from the driver.
  std::optional<uint64_t> gpu_memory_reserved_peak_bytes;
  // Most bytes of weights among those that the allocator handed out.
  std::optional<uint64_t> gpu_weights_peak_bytes;
  // Everything about the GPU except sm_activity_percent, which is above.
  GpuUsage gpu;
};

// A running measurement. Measurements may nest and overlap, on one or several threads.
class ResourceProbe {
 public:
  virtual ~ResourceProbe() = default;
  // Ends the measurement and returns the usage since the probe's start. Call it at most once, on
  // any thread.
  virtual ResourceUsage Finish() = 0;
};

// What one device of a group did during a measurement.
struct DeviceUse {
  // Same as in DeviceSample.
  std::string device;
  std::string name;
  std::string uuid;
  // Figures of the machine are present only for the first device.
  ResourceUsage usage;
  // Bytes sent to the other devices, and time spent waiting for them (ExchangeMeter).
  std::optional<uint64_t> exchanged_bytes;
  std::optional<double> exchange_seconds;
};

// A running measurement of every device of a group.
class GroupProbe {
 public:
  virtual ~GroupProbe() = default;
  // Ends the measurement and returns what each device did since the probe's start, in the order of
  // the ranks. Call it at most once, on any thread, after all measured work has ended.
  virtual std::vector<DeviceUse> Finish() = 0;
};

// Reads the devices repeatedly. Each reader has its own interval, which other readers do not
// affect. One thread at a time may use it.
class DeviceReader {
 public:
  virtual ~DeviceReader() = default;
  // Returns one entry per device, the CPU first, with means since the previous call, or since the
  // reader's construction.
  virtual std::vector<DeviceSample> Sample() = 0;
};

// A point of a timeline: means over the interval that begins at `start` and ends at the next point.
struct TimelinePoint {
  absl::Time start;
  double seconds = 0;
  // Figures of the computing device, the CPU and the process, without names and sizes, which do not
  // change.
  DeviceSample sample;
};

// Records the devices at equal intervals from its start on. When points would exceed kMostPoints,
// the interval doubles. Any thread may call Points().
class DeviceTimeline {
 public:
  static constexpr size_t kMostPoints = 512;
  virtual ~DeviceTimeline() = default;
  virtual std::vector<TimelinePoint> Points() const = 0;
};

// All methods are thread-safe and never wait for a driver. The monitor must outlive what it
// returns.
class DeviceMonitor {
 public:
  virtual ~DeviceMonitor() = default;
  // Starts a measurement; in a group only of the first device.
  virtual std::unique_ptr<ResourceProbe> StartProbe() = 0;
  // Starts a measurement of all devices of a group; null if there is only one device.
  virtual std::unique_ptr<GroupProbe> StartGroupProbe() { return nullptr; }
  // Returns the present state, one entry per device, the CPU first, with means over the last second
  // regardless of the number of callers.
  virtual std::vector<DeviceSample> Sample() = 0;
  // Starts a reader. A monitor without intervals, for example in tests, returns Sample() each time.
  virtual std::unique_ptr<DeviceReader> StartReader();
  // Starts a timeline; null if the monitor records none.
  virtual std::unique_ptr<DeviceTimeline> StartTimeline() { return nullptr; }
};

}  // namespace wan
