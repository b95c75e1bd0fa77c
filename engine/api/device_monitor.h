// Counters of the machine and its GPUs. A figure that cannot be measured is absent, never 0.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace wan {

// The activity of a GPU over a stretch of time, from samples that are taken 20 times a second.
// Every figure is absent if the samples cover less than half of the stretch. Percentages run from 0
// to 100; "of the card" means with all of its processes.
struct GpuUsage {
  // The mean SM activity: by GPM where the card has it, and then absent for stretches below 0.1 s;
  // otherwise the share of time in which any kernel ran.
  std::optional<double> sm_activity_percent;
  std::optional<double> sm_occupancy_percent;     // resident warps; GPM, as the next two
  std::optional<double> tensor_activity_percent;  // time in which tensor cores computed
  std::optional<double> dram_bandwidth_percent;   // of the highest bandwidth
  // Energy of the whole card and its mean power: from the energy counter if that was read often
  // enough, otherwise from the driver's power, which may be a mean of the last second. The peak is
  // the driver's highest figure.
  std::optional<double> energy_joules;
  std::optional<double> power_watts;
  std::optional<double> power_peak_watts;
  std::optional<double> sm_clock_mhz;  // mean and lowest
  std::optional<double> sm_clock_min_mhz;
  std::optional<double> memory_clock_mhz;
  std::optional<double> temperature_peak_celsius;
  // The reasons that held the clocks down in any sample (ThrottleReasonNames in
  // engine/monitor/nvml.h), sorted; and the time with any reason. Both are empty if the driver
  // gives none.
  std::vector<std::string> throttle_reasons;
  std::optional<double> throttled_seconds;
  std::optional<int> processes;  // the most with compute contexts at a time, this one among them
};

// The state of one device at one moment. Percentages run from 0 to 100. Percentages, power and
// clocks are means over the reader's own interval: since its reading before.
struct DeviceSample {
  std::string device;  // "cpu" or "cuda:N"
  std::string name;    // for example "NVIDIA H200"
  std::string uuid;    // of a GPU, "GPU-..."; empty where it is unknown
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
  std::optional<double> sm_occupancy_percent;
  std::optional<double> tensor_activity_percent;
  std::optional<double> dram_bandwidth_percent;
  std::vector<std::string> throttle_reasons;  // of the reader's interval
  std::optional<int> processes;               // with compute contexts on the GPU
  // Sums since the monitor was made, for counters: they only grow, and any number of readers may
  // take differences. The energy of the card, the seconds in which SMs were active (the integral of
  // the SM activity), and those in which clocks were held down: by any reason, and by each.
  std::optional<double> energy_joules;
  std::optional<double> sm_active_seconds;
  std::optional<double> throttled_seconds;
  std::map<std::string, double> throttled_seconds_by_reason;
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
  // The most bytes that the allocator had taken from the driver.
  std::optional<uint64_t> gpu_memory_reserved_peak_bytes;
  // The most bytes that weights held of what the allocator had handed out.
  std::optional<uint64_t> gpu_weights_peak_bytes;
  // Everything about the GPU except sm_activity_percent, which is above.
  GpuUsage gpu;
};

// A running measurement. Measurements may nest and overlap, on one thread and across threads.
class ResourceProbe {
 public:
  virtual ~ResourceProbe() = default;
  // Ends the measurement and returns the usage since the probe was started. Call it at most once;
  // any thread may do so.
  virtual ResourceUsage Finish() = 0;
};

// The work of one device of a group since a measurement was started.
struct DeviceUse {
  // As DeviceSample has them.
  std::string device;
  std::string name;
  std::string uuid;
  // Those of the machine are absent unless the device is the first one.
  ResourceUsage usage;
  // Bytes sent to the other devices, and the time of waiting for them (ExchangeMeter).
  std::optional<uint64_t> exchanged_bytes;
  std::optional<double> exchange_seconds;
};

// A running measurement of every device of a group.
class GroupProbe {
 public:
  virtual ~GroupProbe() = default;
  // Ends the measurement and returns what each device did since the probe was started, in the order
  // of the ranks. Call it at most once, on any thread, after all measured work has ended.
  virtual std::vector<DeviceUse> Finish() = 0;
};

// Reads the devices again and again. Each reader has an interval of its own, which no other reader
// shortens. One thread at a time may use it.
class DeviceReader {
 public:
  virtual ~DeviceReader() = default;
  // Returns one entry for each device, the CPU first, with means since the call before; the first
  // call has means since the reader was made.
  virtual std::vector<DeviceSample> Sample() = 0;
};

// A point of a timeline: the means over the interval that begins at `start`, or ends at the next
// point.
struct TimelinePoint {
  absl::Time start;
  double seconds = 0;
  // The computing device's figures, with the CPU's and the process's. Names and sizes, which do not
  // change, are left out.
  DeviceSample sample;
};

// Records the devices at equal intervals from its start on. The interval doubles whenever there
// would be more than kMostPoints. Any thread may call Points().
class DeviceTimeline {
 public:
  static constexpr size_t kMostPoints = 512;
  virtual ~DeviceTimeline() = default;
  virtual std::vector<TimelinePoint> Points() const = 0;
};

// All methods are thread-safe, and none of them waits for a driver. The monitor must outlive what
// it returns.
class DeviceMonitor {
 public:
  virtual ~DeviceMonitor() = default;
  // Starts a measurement; in a group, of its first device.
  virtual std::unique_ptr<ResourceProbe> StartProbe() = 0;
  // Starts a measurement of every device of a group; null if there is one device.
  virtual std::unique_ptr<GroupProbe> StartGroupProbe() { return nullptr; }
  // Returns the state now: one entry for each device, the CPU first. Its means are those of the
  // last second, however many callers there are.
  virtual std::vector<DeviceSample> Sample() = 0;
  // Starts a reader. A monitor without intervals, as tests have them, returns Sample() each time.
  virtual std::unique_ptr<DeviceReader> StartReader();
  // Starts a timeline; null if the monitor records none.
  virtual std::unique_ptr<DeviceTimeline> StartTimeline() { return nullptr; }
};

}  // namespace wan
