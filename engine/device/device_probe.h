// Asks the calling thread's GPU about its state after something has failed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wan {

// Call it on the thread that computes. Without the CUDA plug-in there is no device to ask: it
// reports no problem and no refused allocation.
class DeviceProbe {
 public:
  virtual ~DeviceProbe() = default;

  // Waits for the queued work and returns nullopt if the device still computes. Otherwise returns
  // the driver's message: the device has left the bus, or an error such as an illegal address has
  // broken the process's context for good.
  virtual std::optional<std::string> FindProblem() = 0;

  // Returns how many allocations LibTorch's allocator has refused so far. This includes those that
  // a library tried and then did without.
  virtual int64_t RefusedAllocations() = 0;

  // Returns whether too little memory is left for libraries' handles and workspaces.
  virtual bool MemoryIsShort() = 0;

  // Returns a sentence that says who holds the device's memory; empty if nothing is known.
  virtual std::string DescribeMemory() = 0;
};

// Returns the probe that asks the device, or the one that a test has installed.
DeviceProbe& CurrentDeviceProbe();

// Installs `probe` as CurrentDeviceProbe() while this object lives. For tests, one at a time.
class ScopedDeviceProbe {
 public:
  explicit ScopedDeviceProbe(DeviceProbe& probe);
  ~ScopedDeviceProbe();
  ScopedDeviceProbe(const ScopedDeviceProbe&) = delete;
  ScopedDeviceProbe& operator=(const ScopedDeviceProbe&) = delete;
};

}  // namespace wan
