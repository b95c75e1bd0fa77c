// The DeviceMonitor of a group: every device is seen, and measurements are those of the first one.
#pragma once

#include <memory>
#include <vector>

#include "engine/api/device_monitor.h"

namespace wan {

class GroupMonitor final : public DeviceMonitor {
 public:
  // One monitor for each device, in the order of the ranks; at least one.
  explicit GroupMonitor(std::vector<std::unique_ptr<DeviceMonitor>> devices);

  // Of the first device, which computes in every stage.
  std::unique_ptr<ResourceProbe> StartProbe() override;
  std::unique_ptr<DeviceTimeline> StartTimeline() override;

  // The CPU once, then each device.
  std::vector<DeviceSample> Sample() override;
  std::unique_ptr<DeviceReader> StartReader() override;

 private:
  const std::vector<std::unique_ptr<DeviceMonitor>> devices_;
};

}  // namespace wan
