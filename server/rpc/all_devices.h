// The devices of all device groups, read together.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/device_monitor.h"
#include "engine/api/engine.h"

namespace wan::server {

// Thread-safe. Each group's monitor returns the processor and the group's own GPUs; here each
// device occurs once, the processor first.
class AllDevices {
 public:
  // The engine of each group, by number. They must outlive the object and its readers.
  explicit AllDevices(const std::vector<Engine*>& engines);

  // As DeviceMonitor::Sample and DeviceMonitor::StartReader.
  std::vector<DeviceSample> Sample() const;
  std::unique_ptr<DeviceReader> StartReader() const;

  // The number of the group that has a GPU; nothing for a processor.
  std::optional<int> GroupOf(const DeviceSample& sample) const;

 private:
  std::vector<DeviceMonitor*> monitors_;
  std::map<std::string, int> groups_;  // by the name of a GPU
};

}  // namespace wan::server
