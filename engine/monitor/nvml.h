// Reads NVIDIA's management library (NVML), which is loaded at run time, so that the same binary
// starts with and without a driver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace wan {

struct GpuCounters {
  std::string name;
  std::optional<uint64_t> memory_used_bytes;  // all processes
  std::optional<uint64_t> memory_total_bytes;
  std::optional<double> utilization_percent;  // share of time with any kernel running
  std::optional<double> power_watts;
  std::optional<double> temperature_celsius;
  std::optional<double> sm_clock_mhz;
  std::optional<double> memory_clock_mhz;
  // Why the clocks are below the highest (ThrottleReasonNames); empty: nothing holds them.
  std::optional<std::vector<std::string>> throttle_reasons;
};

// Returns the names of the bits of NVML's clocks event reasons that hold clocks down, "power cap"
// and so on. An idle GPU and clocks that an operator set are no reasons; a bit that this code does
// not know is "reason 0x..".
std::vector<std::string> ThrottleReasonNames(uint64_t reasons);

// The driver's GPM counters at one moment. Two of them give the SM activity between them.
class GpmSample {
 public:
  virtual ~GpmSample() = default;
};

// One GPU. Thread-safe.
class NvmlDevice {
 public:
  virtual ~NvmlDevice() = default;
  // Reads all counters, with one call to the driver for each.
  virtual GpuCounters Read() const = 0;
  // Read one counter each, for callers that measure often.
  virtual std::optional<uint64_t> ReadMemoryUsedBytes() const = 0;
  virtual std::optional<double> ReadUtilizationPercent() const = 0;
  // Returns null if the card has no GPM (before Hopper) or GPM is off.
  virtual std::unique_ptr<GpmSample> TakeGpmSample() const = 0;
  // Returns the mean SM activity between two samples, 0 to 100. They must be more than 100 ms
  // apart.
  virtual std::optional<double> SmActivity(const GpmSample& from, const GpmSample& to) const = 0;
};

// Whether SM activity is measured with GPM. If it is off, no function of GPM is called, and the
// card is treated as one without it.
enum class GpmUse { kOn, kOff };

// Opens the GPU with this PCI bus id ("0000:1b:00.0"). Returns null if there is no driver or no
// such GPU.
std::unique_ptr<NvmlDevice> OpenNvmlDevice(const std::string& pci_bus_id, GpmUse gpm = GpmUse::kOn);

}  // namespace wan
