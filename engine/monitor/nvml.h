// Reads NVIDIA's management library (NVML). The library is loaded at run time, so that the program
// also starts without a driver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/system_facts.h"

namespace wan {

struct GpuCounters {
  std::optional<uint64_t> memory_used_bytes;  // bytes that all processes use
  std::optional<uint64_t> memory_total_bytes;
  std::optional<double> utilization_percent;  // share of the time in which any kernel ran
  std::optional<double> power_watts;          // on an H200 the mean of the last second
  std::optional<double> temperature_celsius;
  std::optional<double> sm_clock_mhz;
  std::optional<double> memory_clock_mhz;
  // The reasons for which clocks are reduced (see ThrottleReasonNames); empty: clocks are not
  // reduced.
  std::optional<std::vector<std::string>> throttle_reasons;
};

// Returns the names of those bits of NVML's "clocks event reasons" that reduce clocks, for example
// "power cap". The function leaves out the bits for an idle GPU and for clocks that an operator has
// set. The name of an unknown bit is "reason 0x..".
std::vector<std::string> ThrottleReasonNames(uint64_t reasons);

// The driver's GPM counters at one moment. Two samples give the metrics of the time between them.
class GpmSample {
 public:
  virtual ~GpmSample() = default;
};

// Means of the time between two GPM samples, in percent.
struct GpmMetrics {
  std::optional<double> sm_activity_percent;
  std::optional<double> sm_occupancy_percent;
  std::optional<double> tensor_activity_percent;
  std::optional<double> dram_bandwidth_percent;
};

// A GPU, as NVML sees it. Thread-safe. Every call may block in the driver, for example after a card
// was lost. So do not call these functions on a thread for which other threads wait.
class NvmlDevice {
 public:
  virtual ~NvmlDevice() = default;
  // Returns a description of the card, for which it calls the driver a few times. The result is
  // always the same.
  virtual GpuFacts Describe() const = 0;
  // Reads all counters; each takes a driver call of some microseconds.
  virtual GpuCounters Read() const = 0;
  // Returns the energy that the card has used since the driver was loaded. The call takes 3 to 12
  // ms on an H200 (driver 580.159.04), which is more than all other readings of a second together.
  // Other calls of the driver in this process may wait meanwhile.
  virtual std::optional<double> ReadEnergyJoules() const = 0;
  // Returns how many processes have compute contexts on the card.
  virtual std::optional<int> CountProcesses() const = 0;
  // Returns the GPM counters now; null if the card has no GPM (before Hopper) or GPM is not used.
  virtual std::unique_ptr<GpmSample> TakeGpmSample() const = 0;
  // Returns the means of the time between two samples, which must be at least 100 ms apart.
  virtual GpmMetrics Between(const GpmSample& from, const GpmSample& to) const = 0;
};

// Whether GPM measures SM activity. If GPM is off, none of its functions is called, as on a card
// without GPM.
enum class GpmUse { kOn, kOff };

// Opens the GPU that has this PCI bus id ("0000:1b:00.0"). Returns null if there is no driver or no
// such GPU.
std::unique_ptr<NvmlDevice> OpenNvmlDevice(const std::string& pci_bus_id, GpmUse gpm = GpmUse::kOn);

}  // namespace wan
