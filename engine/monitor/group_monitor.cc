#include "engine/monitor/group_monitor.h"

#include <utility>

namespace wan {
namespace {

// Every source has the CPU first, which is one and the same.
template <typename Source>
std::vector<DeviceSample> SampleAll(const std::vector<std::unique_ptr<Source>>& sources) {
  std::vector<DeviceSample> all;
  for (const std::unique_ptr<Source>& source : sources) {
    std::vector<DeviceSample> samples = source->Sample();
    for (size_t i = all.empty() ? 0 : 1; i < samples.size(); ++i) {
      all.push_back(std::move(samples[i]));
    }
  }
  return all;
}

class GroupReader final : public DeviceReader {
 public:
  explicit GroupReader(std::vector<std::unique_ptr<DeviceReader>> readers)
      : readers_(std::move(readers)) {}
  std::vector<DeviceSample> Sample() override { return SampleAll(readers_); }

 private:
  const std::vector<std::unique_ptr<DeviceReader>> readers_;
};

}  // namespace

GroupMonitor::GroupMonitor(std::vector<std::unique_ptr<DeviceMonitor>> devices)
    : devices_(std::move(devices)) {}

std::unique_ptr<ResourceProbe> GroupMonitor::StartProbe() { return devices_[0]->StartProbe(); }

std::unique_ptr<DeviceTimeline> GroupMonitor::StartTimeline() {
  return devices_[0]->StartTimeline();
}

std::vector<DeviceSample> GroupMonitor::Sample() { return SampleAll(devices_); }

std::unique_ptr<DeviceReader> GroupMonitor::StartReader() {
  std::vector<std::unique_ptr<DeviceReader>> readers;
  for (const auto& device : devices_) readers.push_back(device->StartReader());
  return std::make_unique<GroupReader>(std::move(readers));
}

}  // namespace wan
