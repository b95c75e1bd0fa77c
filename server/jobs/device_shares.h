// What each GPU of a device group does for an attempt.
#pragma once

#include <memory>
#include <vector>

#include "engine/api/device_monitor.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {

// Measures from its making on. One thread at a time may use it; the monitor must outlive it.
class DeviceShares {
 public:
  explicit DeviceShares(DeviceMonitor& monitor);

  // Returns the share of each GPU, in the order of the monitor; nothing for a group with less than
  // two, whose figures are those of the stages. A figure that cannot be measured is absent. Call it
  // once.
  std::vector<wan::v1::DeviceShare> Finish();

 private:
  const std::unique_ptr<DeviceReader> reader_;
  const std::vector<DeviceSample> begin_;
};

}  // namespace wan::server
