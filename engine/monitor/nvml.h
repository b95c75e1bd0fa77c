// NVIDIA's management library, loaded at run time so that one binary starts with and without a
// driver.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

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
};

// Counters at one moment from which SM activity over a stretch is computed (GPM).
class GpmSample {
 public:
  virtual ~GpmSample() = default;
};

// One GPU. Thread-safe.
class NvmlDevice {
 public:
  virtual ~NvmlDevice() = default;
  // Everything: a call to the driver for each.
  virtual GpuCounters Read() const = 0;
  // These alone, for what is measured often.
  virtual std::optional<uint64_t> ReadMemoryUsedBytes() const = 0;
  virtual std::optional<double> ReadUtilizationPercent() const = 0;
  // Null where the card has no GPM (before Hopper), or GPM is off.
  virtual std::unique_ptr<GpmSample> TakeGpmSample() const = 0;
  // Mean SM activity between two samples in percent. NVML asks for more than 100 ms between them.
  virtual std::optional<double> SmActivity(const GpmSample& from, const GpmSample& to) const = 0;
};

// Whether SM activity is measured with GPM. Off: nothing of GPM is ever called, and the card counts
// as one without it.
enum class GpmUse { kOn, kOff };

// The GPU with this PCI bus id ("0000:1b:00.0"); null without a driver or such a GPU.
std::unique_ptr<NvmlDevice> OpenNvmlDevice(const std::string& pci_bus_id, GpmUse gpm = GpmUse::kOn);

}  // namespace wan
