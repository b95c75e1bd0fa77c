#include "server/jobs/device_shares.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace wan::server {
namespace {

constexpr char kCpu[] = "cpu";

// What a sum has grown by; nothing if one of its ends is not known.
std::optional<double> Grown(const std::optional<double>& from, const std::optional<double>& to) {
  if (!from.has_value() || !to.has_value()) return std::nullopt;
  return std::max(*to - *from, 0.0);
}

}  // namespace

DeviceShares::DeviceShares(DeviceMonitor& monitor)
    : reader_(monitor.StartReader()), begin_(reader_->Sample()) {}

std::vector<wan::v1::DeviceShare> DeviceShares::Finish() {
  std::vector<wan::v1::DeviceShare> shares;
  // The means are those since the reading at the begin.
  for (const DeviceSample& end : reader_->Sample()) {
    if (end.device == kCpu) continue;
    wan::v1::DeviceShare& share = shares.emplace_back();
    share.set_device(end.device);
    share.set_name(end.name);
    share.set_uuid(end.uuid);
    if (end.sm_activity_percent.has_value()) {
      share.set_sm_activity_percent(*end.sm_activity_percent);
    }
    if (end.power_watts.has_value()) share.set_power_watts(*end.power_watts);
    const auto begin = std::find_if(begin_.begin(), begin_.end(), [&](const DeviceSample& sample) {
      return sample.device == end.device;
    });
    if (begin == begin_.end()) continue;
    const std::optional<double> energy = Grown(begin->energy_joules, end.energy_joules);
    if (energy.has_value()) share.set_energy_joules(*energy);
    const std::optional<double> throttled = Grown(begin->throttled_seconds, end.throttled_seconds);
    if (throttled.has_value()) share.set_throttled_seconds(*throttled);
  }
  if (shares.size() < 2) shares.clear();
  return shares;
}

}  // namespace wan::server
