#include "server/calls/all_devices.h"

#include <algorithm>
#include <utility>

namespace wan::server {
namespace {

constexpr char kCpu[] = "cpu";

// Adds to `all` those devices of `more` that it does not contain yet.
void Merge(std::vector<DeviceSample> more, std::vector<DeviceSample>& all) {
  for (DeviceSample& sample : more) {
    const bool known = std::any_of(all.begin(), all.end(), [&](const DeviceSample& other) {
      return other.device == sample.device;
    });
    if (!known) all.push_back(std::move(sample));
  }
}

class AllReaders final : public DeviceReader {
 public:
  explicit AllReaders(const std::vector<DeviceMonitor*>& monitors) {
    for (DeviceMonitor* const monitor : monitors) readers_.push_back(monitor->StartReader());
  }

  std::vector<DeviceSample> Sample() override {
    std::vector<DeviceSample> all;
    for (const auto& reader : readers_) Merge(reader->Sample(), all);
    return all;
  }

 private:
  std::vector<std::unique_ptr<DeviceReader>> readers_;
};

}  // namespace

AllDevices::AllDevices(const std::vector<Engine*>& engines) {
  for (Engine* const engine : engines) {
    const int group = static_cast<int>(monitors_.size());
    monitors_.push_back(&engine->Monitor());
    for (const DeviceSample& sample : engine->Monitor().Sample()) {
      if (sample.device != kCpu) groups_.emplace(sample.device, group);
    }
  }
}

std::vector<DeviceSample> AllDevices::Sample() const {
  std::vector<DeviceSample> all;
  for (DeviceMonitor* const monitor : monitors_) Merge(monitor->Sample(), all);
  return all;
}

std::unique_ptr<DeviceReader> AllDevices::StartReader() const {
  return std::make_unique<AllReaders>(monitors_);
}

std::optional<int> AllDevices::GroupOf(const DeviceSample& sample) const {
  const auto found = groups_.find(sample.device);
  if (found == groups_.end()) return std::nullopt;
  return found->second;
}

}  // namespace wan::server
