// Usage figures of the machine and its GPUs. A figure that cannot be measured is absent, never 0.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace wan {

// A GPU's activity over an interval, computed from 20 samples a second. All figures are absent if
// the samples cover less than half of the interval. Percentages run from 0 to 100; figures "of the
// card" include all processes.
struct GpuUsage {
  // Mean activity of the SMs: measured by GPM if the card has it (absent for intervals below 0.1
  // s), otherwise the share of time in which any kernel ran.
  std::optional<double> sm_activity_percent;
  std::optional<double>
      sm_occupancy_percent;  // resident warps; GPM measures this and the next two figures
  std::optional<double> tensor_activity_percent;  // share of time in which tensor cores computed
  std::optional<double> dram_bandwidth_percent;   // share of the highest bandwidth that was used
  // Energy and mean power of the whole card. Energy and power come from the energy counter if it
  // was read often enough, otherwise from the power that the driver reports, which may be a mean of
  // the last second. The peak is the highest power that the driver reported.
  std::optional<double> energy_joules;
  std::optional<double> power_watts;
  std::optional<double> power_peak_watts;
  std::optional<double> sm_clock_mhz;  // mean clock; the next figure is the lowest
  std::optional<double> sm_clock_min_mhz;
  std::optional<double> memory_clock_mhz;
  std::optional<double> temperature_peak_celsius;
  // The reasons for reduced clocks that any sample had (ThrottleReasonNames in
  // engine/monitor/nvml.h), sorted, and the time in which any of them held. The list is empty if
  // the driver reports no reasons.
  std::vector<std::string> throttle_reasons;
  std::optional<double> throttled_seconds;
  std::optional<int> processes;  // maximum number of processes with compute contexts, including
                                 // this one
};

// A device's state at one moment. Percentages run from 0 to 100. Percentages, power and clocks are
// means since the previous reading of the same reader.
struct DeviceSample {
  std::string device;  // "cpu" or "cuda:N"
  std::string name;    // for example "NVIDIA H200"
  std::string uuid;    // "GPU-..."; empty if unknown, or if the device is not a GPU
  std::optional<double> sm_activity_percent;
  std::optional<uint64_t> memory_used_bytes;
  std::optional<uint64_t> memory_total_bytes;
  std::optional<uint64_t> allocator_bytes;
  std::optional<double> power_watts;
  std::optional<double> temperature_celsius;
  std::optional<double> sm_clock_mhz;
  std::optional<double> memory_clock_mhz;
  std::optional<double> cpu_percent;          // mean use of all cores of the machine
  std::optional<double> process_cpu_percent;  // the part of cpu_percent that this process used
  std::optional<uint64_t> process_memory_bytes;
  std::optional<uint64_t> process_memory_peak_bytes;
  std::optional<double> sm_occupancy_percent;
  std::optional<double> tensor_activity_percent;
  std::optional<double> dram_bandwidth_percent;
  std::vector<std::string> throttle_reasons;  // why clocks were reduced in that time
  std::optional<int> processes;               // number of processes with compute contexts on the
                                              // GPU
  // Sums since the monitor's construction. The sums only grow, so any number of readers may compute
  // differences between two readings. The sums are the card's energy, the seconds in which SMs were
  // active (the integral of SM activity), and the seconds in which clocks were reduced, in total
  // and for each reason.
  std::optional<double> energy_joules;
  std::optional<double> sm_active_seconds;
  std::optional<double> throttled_seconds;
  std::map<std::string, double> throttled_seconds_by_reason;
};

// Resources that the process used between a probe's start and its Finish(). Percentages run from 0
// to 100.
struct ResourceUsage {
  // The first three figures come from the allocator: memory of this process's tensors.
  std::optional<uint64_t> gpu_memory_start_bytes;
  std::optional<uint64_t> gpu_memory_end_bytes;
  std::optional<uint64_t> gpu_memory_peak_bytes;
  // Memory of the whole card at the end, used by all processes, as NVML reports it.
  std::optional<uint64_t> gpu_memory_used_bytes;
  std::optional<double> cpu_percent;          // mean use of all cores of the machine
  std::optional<double> process_cpu_percent;  // the part of cpu_percent that this process used
  std::optional<uint64_t> system_memory_used_bytes;
  std::optional<uint64_t> process_memory_peak_bytes;
  std::optional<double> sm_activity_percent;
  // Maximum of the bytes that the allocator had taken from the driver.
  std::optional<uint64_t> gpu_memory_reserved_peak_bytes;
  // Maximum of the bytes of weights within the allocator's memory.
  std::optional<uint64_t> gpu_weights_peak_bytes;
  // All other figures of the GPU. sm_activity_percent is a member of ResourceUsage and absent here.
  GpuUsage gpu;
};

// A running measurement, which starts with this object. Measurements may nest and overlap, on one
// or several threads.
class ResourceProbe {
 public:
  virtual ~ResourceProbe() = default;
  // Ends the measurement and returns the usage since its start. Call it at most once; any thread
  // may call it.
  virtual ResourceUsage Finish() = 0;
};

// The figures of one device of a group for one measurement.
struct DeviceUse {
  // Name and id of the device, as in DeviceSample.
  std::string device;
  std::string name;
  std::string uuid;
  // Figures of the whole machine are present only for the first device of the group.
  ResourceUsage usage;
  // Bytes sent to the other devices, and the time spent waiting for them (ExchangeMeter).
  std::optional<uint64_t> exchanged_bytes;
  std::optional<double> exchange_seconds;
};

// A running measurement of every device of a group.
class GroupProbe {
 public:
  virtual ~GroupProbe() = default;
  // Ends the measurement and returns the figures of each device since its start, in the order of
  // the ranks. Call it at most once, after all measured work has ended; any thread may call it.
  virtual std::vector<DeviceUse> Finish() = 0;
};

// Takes a sample of the devices each time it is asked. A reader's samples cover the time since the
// reader's own previous sample, whatever other readers do. Only one thread at a time may use a
// reader.
class DeviceReader {
 public:
  virtual ~DeviceReader() = default;
  // Returns one entry per device, the CPU first. Means cover the time since the previous call or,
  // in the first call, since the reader's construction.
  virtual std::vector<DeviceSample> Sample() = 0;
};

// A point of a timeline. The means of a point cover the interval from `start` to the start of the
// next point.
struct TimelinePoint {
  absl::Time start;
  double seconds = 0;
  // Figures of the computing device, the CPU and the process. The samples lack names and sizes,
  // which do not change.
  DeviceSample sample;
};

// Records figures of the devices at equal intervals, from construction on. Whenever there would be
// more than kMostPoints points, the interval doubles. Any thread may call Points().
class DeviceTimeline {
 public:
  static constexpr size_t kMostPoints = 512;
  virtual ~DeviceTimeline() = default;
  virtual std::vector<TimelinePoint> Points() const = 0;
};

// All methods are thread-safe and never wait for a driver. The monitor must outlive all objects
// that it returns.
class DeviceMonitor {
 public:
  virtual ~DeviceMonitor() = default;
  // Starts a measurement of the device; in a group, of the first device only.
  virtual std::unique_ptr<ResourceProbe> StartProbe() = 0;
  // Starts a measurement of all devices of a group; null if there is only one device.
  virtual std::unique_ptr<GroupProbe> StartGroupProbe() { return nullptr; }
  // Returns the present state, one entry per device, the CPU first. Means cover the last second,
  // however many callers there are.
  virtual std::vector<DeviceSample> Sample() = 0;
  // Starts a reader. If a monitor has no intervals, as in tests, the reader returns Sample() each
  // time.
  virtual std::unique_ptr<DeviceReader> StartReader();
  // Starts a timeline; null if this monitor records none.
  virtual std::unique_ptr<DeviceTimeline> StartTimeline() { return nullptr; }
};

}  // namespace wan
