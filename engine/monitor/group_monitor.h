// The DeviceMonitor of a group: samples cover every device; single probes and timelines are the
// first device's.
#pragma once

#include <memory>
#include <vector>

#include "engine/api/device_monitor.h"
#include "engine/api/exchange_meter.h"

namespace wan {

// A device of a group.
struct MonitoredDevice {
  // Must not be null.
  std::unique_ptr<DeviceMonitor> monitor;
  // Counts the device's exchanges with the others; null: those figures are absent.
  std::shared_ptr<ExchangeMeter> exchanges = nullptr;
};

class GroupMonitor final : public DeviceMonitor {
 public:
  // In the order of the ranks; at least one. If the monitor of a device sees no GPU, the device is
  // the CPU, of which a group may have several ranks.
  explicit GroupMonitor(std::vector<MonitoredDevice> devices);

  // These belong to the first device, which computes in every stage.
  std::unique_ptr<ResourceProbe> StartProbe() override;
  std::unique_ptr<DeviceTimeline> StartTimeline() override;

  std::unique_ptr<GroupProbe> StartGroupProbe() override;

  // The CPU once, then each GPU.
  std::vector<DeviceSample> Sample() override;
  std::unique_ptr<DeviceReader> StartReader() override;

 private:
  const std::vector<MonitoredDevice> devices_;
};

}  // namespace wan
