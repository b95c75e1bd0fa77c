// Finds out the state of the calling thread's GPU after a failure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wan {

// Call it on the computing thread. Without the CUDA plug-in it reports no problem and no refused
// allocation.
class DeviceProbe {
 public:
  virtual ~DeviceProbe() = default;

  // Waits for the queued work. Returns nullopt if the device still computes. Otherwise returns the
  // driver's message: the device is gone, or an error such as an illegal address has permanently
  // broken the process's context.
  virtual std::optional<std::string> FindProblem() = 0;

  // Returns how many allocations LibTorch's allocator has refused so far, including those that a
  // library could do without.
  virtual int64_t RefusedAllocations() = 0;

  // Returns whether memory is too short for libraries' handles and workspaces.
  virtual bool MemoryIsShort() = 0;

  // Returns a sentence about who holds the device's memory; empty if unknown.
  virtual std::string DescribeMemory() = 0;
};

// Returns the device's probe, or the one that a test has installed.
DeviceProbe& CurrentDeviceProbe();

// Installs `probe` as CurrentDeviceProbe() while this object lives. For tests; at most one object
// at a time.
class ScopedDeviceProbe {
 public:
  explicit ScopedDeviceProbe(DeviceProbe& probe);
  ~ScopedDeviceProbe();
  ScopedDeviceProbe(const ScopedDeviceProbe&) = delete;
  ScopedDeviceProbe& operator=(const ScopedDeviceProbe&) = delete;
};

}  // namespace wan
