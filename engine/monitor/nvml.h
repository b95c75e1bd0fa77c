// Reads NVIDIA's management library (NVML), loaded at run time so that the binary also starts
// without a driver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/system_facts.h"

namespace wan {

struct GpuCounters {
  std::optional<uint64_t> memory_used_bytes;  // bytes used by all processes
  std::optional<uint64_t> memory_total_bytes;
  std::optional<double> utilization_percent;  // share of time with any kernel running
  std::optional<double> power_watts;          // mean of the last second on an H200
  std::optional<double> temperature_celsius;
  std::optional<double> sm_clock_mhz;
  std::optional<double> memory_clock_mhz;
  // Reasons for reduced clocks (ThrottleReasonNames); empty: none.
  std::optional<std::vector<std::string>> throttle_reasons;
};

// Returns names for the bits of NVML's clocks event reasons that reduce clocks, for example "power
// cap". An idle GPU and clocks set by an operator are left out; an unknown bit is "reason 0x..".
std::vector<std::string> ThrottleReasonNames(uint64_t reasons);

// The driver's GPM counters at one moment; two samples give the metrics between them.
class GpmSample {
 public:
  virtual ~GpmSample() = default;
};

// Means between two GPM samples, in percent.
struct GpmMetrics {
  std::optional<double> sm_activity_percent;
  std::optional<double> sm_occupancy_percent;
  std::optional<double> tensor_activity_percent;
  std::optional<double> dram_bandwidth_percent;
};

// One GPU. Thread-safe. Every call may block in the driver, for example after the loss of a card,
// so call none on a thread that others wait for.
class NvmlDevice {
 public:
  virtual ~NvmlDevice() = default;
  // Describes the card with a few driver calls. The result never changes.
  virtual GpuFacts Describe() const = 0;
  // Reads all counters, with one driver call of some microseconds for each.
  virtual GpuCounters Read() const = 0;
  // Returns the energy used by the card since the driver was loaded. Takes 3 to 12 ms on an H200
  // (driver 580.159.04), more than all other readings of a second together; the process's other
  // driver calls may wait meanwhile.
  virtual std::optional<double> ReadEnergyJoules() const = 0;
  // Returns the number of processes with compute contexts on the card.
  virtual std::optional<int> CountProcesses() const = 0;
  // Returns null if the card has no GPM (before Hopper) or its use is off.
  virtual std::unique_ptr<GpmSample> TakeGpmSample() const = 0;
  // Returns the means between two samples, which must be at least 100 ms apart.
  virtual GpmMetrics Between(const GpmSample& from, const GpmSample& to) const = 0;
};

// Whether SM activity is measured with GPM. If off, no GPM function is called, as on a card without
// GPM.
enum class GpmUse { kOn, kOff };

// Opens the GPU with this PCI bus id ("0000:1b:00.0"). Returns null if there is no driver or no
// such GPU.
std::unique_ptr<NvmlDevice> OpenNvmlDevice(const std::string& pci_bus_id, GpmUse gpm = GpmUse::kOn);

}  // namespace wan
