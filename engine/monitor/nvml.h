// Reads NVIDIA's management library (NVML), which is loaded at run time, so that the same binary
// starts with and without a driver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/system_facts.h"

namespace wan {

struct GpuCounters {
  std::optional<uint64_t> memory_used_bytes;  // all processes
  std::optional<uint64_t> memory_total_bytes;
  std::optional<double> utilization_percent;  // share of time with any kernel running
  std::optional<double> power_watts;          // the mean of the last second on an H200
  std::optional<double> temperature_celsius;
  std::optional<double> sm_clock_mhz;
  std::optional<double> memory_clock_mhz;
  // The reasons why the clocks are below the highest (ThrottleReasonNames); empty: none.
  std::optional<std::vector<std::string>> throttle_reasons;
};

// Returns the names of the bits of NVML's clocks event reasons that hold clocks down, "power cap"
// and so on. An idle GPU and clocks set by an operator do not count as reasons; an unknown bit is
// "reason 0x..".
std::vector<std::string> ThrottleReasonNames(uint64_t reasons);

// The driver's GPM counters at one moment. Two of them give the metrics between them.
class GpmSample {
 public:
  virtual ~GpmSample() = default;
};

// Means between two GPM samples, in percent, 0 to 100.
struct GpmMetrics {
  std::optional<double> sm_activity_percent;
  std::optional<double> sm_occupancy_percent;
  std::optional<double> tensor_activity_percent;
  std::optional<double> dram_bandwidth_percent;
};

// One GPU. Thread-safe. Every call may block in the driver, as was seen after the loss of a card,
// so no thread that others wait for may call it.
class NvmlDevice {
 public:
  virtual ~NvmlDevice() = default;
  // Describes the card. It takes a handful of calls to the driver; nothing of it changes.
  virtual GpuFacts Describe() const = 0;
  // Reads all counters, with one call to the driver for each; some microseconds each.
  virtual GpuCounters Read() const = 0;
  // Returns the energy that the card has used since the driver was loaded. It takes longer
  // than all other readings of a second together, 3 to 12 ms on an H200 (driver 580.159.04), for
  // which other calls of the process to the driver may wait.
  virtual std::optional<double> ReadEnergyJoules() const = 0;
  // Returns the number of processes with compute contexts on the card.
  virtual std::optional<int> CountProcesses() const = 0;
  // Returns null if the card has no GPM (before Hopper) or GPM is off.
  virtual std::unique_ptr<GpmSample> TakeGpmSample() const = 0;
  // Returns the means between two samples, which must be at least 100 ms apart.
  virtual GpmMetrics Between(const GpmSample& from, const GpmSample& to) const = 0;
};

// Whether SM activity is measured with GPM. If it is off, no function of GPM is called, and the
// card is treated as one without it.
enum class GpmUse { kOn, kOff };

// Opens the GPU with this PCI bus id ("0000:1b:00.0"). Returns null if there is no driver or no
// such GPU.
std::unique_ptr<NvmlDevice> OpenNvmlDevice(const std::string& pci_bus_id, GpmUse gpm = GpmUse::kOn);

}  // namespace wan
