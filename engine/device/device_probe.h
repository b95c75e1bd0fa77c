// Finds out, after a failure, in which state the calling thread's GPU is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wan {

// Call the functions on the thread that computes. Without the CUDA plug-in the functions report no
// problems and no refused allocations.
class DeviceProbe {
 public:
  virtual ~DeviceProbe() = default;

  // Waits for the work that is queued. Returns nullopt if the device can still compute. Otherwise
  // returns the driver's message. Either the device is gone, or an error such as an illegal address
  // has broken the process's context for good.
  virtual std::optional<std::string> FindProblem() = 0;

  // Returns how many allocations LibTorch's allocator has refused so far. Some refusals do no harm,
  // because the library that asked can do without the memory.
  virtual int64_t RefusedAllocations() = 0;

  // Returns whether the device has too little free memory for the handles and workspaces of
  // libraries.
  virtual bool MemoryIsShort() = 0;

  // Returns a sentence that says who holds the device's memory; empty if that is unknown.
  virtual std::string DescribeMemory() = 0;
};

// Returns the device's probe, or the probe that a test has installed.
DeviceProbe& CurrentDeviceProbe();

// Installs `probe` as CurrentDeviceProbe() while this object lives. Only tests use this class; at
// most one object may live at a time.
class ScopedDeviceProbe {
 public:
  explicit ScopedDeviceProbe(DeviceProbe& probe);
  ~ScopedDeviceProbe();
  ScopedDeviceProbe(const ScopedDeviceProbe&) = delete;
  ScopedDeviceProbe& operator=(const ScopedDeviceProbe&) = delete;
};

}  // namespace wan
