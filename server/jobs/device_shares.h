// Measures how much work each device of a group does in an attempt.
#pragma once

#include <memory>
#include <vector>

#include "engine/api/device_monitor.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {

// Begins to measure when it is constructed. One thread at a time may use it; the monitor must
// outlive it.
class DeviceShares {
 public:
  explicit DeviceShares(DeviceMonitor& monitor) : probe_(monitor.StartGroupProbe()) {}

  // Returns the share of each device, in the order of the ranks; empty for a group of one device,
  // whose work the stages already report. Fields that cannot be measured are unset. Call it at most
  // once.
  std::vector<wan::v1::DeviceShare> Finish();

 private:
  const std::unique_ptr<GroupProbe> probe_;
};

}  // namespace wan::server
