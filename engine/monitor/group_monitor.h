// The DeviceMonitor for a group of devices. Samples cover every device. Single probes and timelines
// cover only the first device.
#pragma once

#include <memory>
#include <vector>

#include "engine/api/device_monitor.h"
#include "engine/api/exchange_meter.h"

namespace wan {

// One device of the group.
struct MonitoredDevice {
  // The device's monitor, which must not be null.
  std::unique_ptr<DeviceMonitor> monitor;
  // Counts the device's exchanges with other devices; null: the figures of exchanges are absent.
  std::shared_ptr<ExchangeMeter> exchanges = nullptr;
};

class GroupMonitor final : public DeviceMonitor {
 public:
  // `devices` has at least one entry, and is in the order of the ranks. A monitor without a GPU
  // stands for the CPU, on which several ranks may compute.
  explicit GroupMonitor(std::vector<MonitoredDevice> devices);

  // Probes and timelines cover the first device, because it computes in every stage.
  std::unique_ptr<ResourceProbe> StartProbe() override;
  std::unique_ptr<DeviceTimeline> StartTimeline() override;

  std::unique_ptr<GroupProbe> StartGroupProbe() override;

  // Returns the CPU's sample once, then a sample for each GPU.
  std::vector<DeviceSample> Sample() override;
  std::unique_ptr<DeviceReader> StartReader() override;

 private:
  const std::vector<MonitoredDevice> devices_;
};

}  // namespace wan
