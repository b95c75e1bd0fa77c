// What the calling thread's GPU says of itself after something has failed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wan {

// On a machine without the CUDA plug-in there is nothing to ask: no problem, nothing refused.
class DeviceProbe {
 public:
  virtual ~DeviceProbe() = default;

  // The driver's words if the device works no more for this process: it has left the bus, or an
  // error has broken the process's context for good, as an illegal address does. Nullopt if it
  // computes. Waits for what is queued.
  virtual std::optional<std::string> FindProblem() = 0;

  // How many allocations LibTorch's allocator has refused so far, also those that a library tried
  // and did without.
  virtual int64_t RefusedAllocations() = 0;

  // Whether so little is left that libraries find no room for their own handles and workspaces.
  virtual bool MemoryIsShort() = 0;

  // A sentence about who holds the device's memory; empty where nothing is known.
  virtual std::string DescribeMemory() = 0;
};

// The one that asks the device, or a test's. Calls are for the thread that computes.
DeviceProbe& CurrentDeviceProbe();

// Answers in place of the device while it lives. For tests, one at a time.
class ScopedDeviceProbe {
 public:
  explicit ScopedDeviceProbe(DeviceProbe& probe);
  ~ScopedDeviceProbe();
  ScopedDeviceProbe(const ScopedDeviceProbe&) = delete;
  ScopedDeviceProbe& operator=(const ScopedDeviceProbe&) = delete;
};

}  // namespace wan
