// Reads the devices of all device groups together.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/device_monitor.h"
#include "engine/api/engine.h"

namespace wan::server {

// Thread-safe. Each group's monitor returns the processor and the group's GPUs; this object returns
// every device once, the processor first.
class AllDevices {
 public:
  // `engines` has the engine of each group; the index is the group's number. The engines must
  // outlive the object and its readers.
  explicit AllDevices(const std::vector<Engine*>& engines);

  // Works like DeviceMonitor::Sample and DeviceMonitor::StartReader, but for all devices.
  std::vector<DeviceSample> Sample() const;
  std::unique_ptr<DeviceReader> StartReader() const;

  // Returns the number of the group that has the GPU; nothing for the processor.
  std::optional<int> GroupOf(const DeviceSample& sample) const;

 private:
  std::vector<DeviceMonitor*> monitors_;
  std::map<std::string, int> groups_;  // each group's number; the key is the name of a GPU
};

}  // namespace wan::server
