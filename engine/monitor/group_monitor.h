// The DeviceMonitor of a group. Samples cover every device; single probes and timelines only the
// first.
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
  // Counts exchanges with other devices; null: those figures are absent.
  std::shared_ptr<ExchangeMeter> exchanges = nullptr;
};

class GroupMonitor final : public DeviceMonitor {
 public:
  // `devices` has at least one entry, in the order of the ranks. A monitor without a GPU stands for
  // the CPU, which may be several ranks.
  explicit GroupMonitor(std::vector<MonitoredDevice> devices);

  // Probes and timelines are of the first device, which computes in every stage.
  std::unique_ptr<ResourceProbe> StartProbe() override;
  std::unique_ptr<DeviceTimeline> StartTimeline() override;

  std::unique_ptr<GroupProbe> StartGroupProbe() override;

  // Returns the CPU once, then each GPU.
  std::vector<DeviceSample> Sample() override;
  std::unique_ptr<DeviceReader> StartReader() override;

 private:
  const std::vector<MonitoredDevice> devices_;
};

}  // namespace wan
